"""References to backends, resolved to endpoints."""
