"""What the workers of a gateway count together, in memory that they share."""
