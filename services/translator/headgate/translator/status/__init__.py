"""What is written to the status of objects."""
