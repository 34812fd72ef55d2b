"""`proxy-cache` and its parts."""
