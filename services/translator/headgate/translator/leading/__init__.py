"""The log as input, and what one translator does while it leads."""
