"""Routes: where they are attached, and what becomes of their requests."""
