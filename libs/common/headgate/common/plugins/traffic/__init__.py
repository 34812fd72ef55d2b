"""Where requests go, and with which head."""
