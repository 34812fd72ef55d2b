"""What is reported of requests."""
