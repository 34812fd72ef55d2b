"""What is served of a table: revisions, pins, held tables and rollouts."""
