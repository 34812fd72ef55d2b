"""What one object contributes to the table, and what it costs."""
