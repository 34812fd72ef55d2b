"""What people do to a table: pinning it to an old revision and unpinning it, and what came of that."""
