"""From what a source tells to the log: what the log has, what it should have, and appending the difference."""
