"""What a table serves: its revisions, what led to them, what differs, and the entries that are in them."""
