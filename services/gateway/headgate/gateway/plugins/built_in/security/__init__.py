"""Which requests may pass."""
