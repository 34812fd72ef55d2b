"""Pages for people: each is a URL with its filter, and ends with the same question as a command."""
