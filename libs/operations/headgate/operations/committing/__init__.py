"""Making a table the next revision: publishing it, keeping or dropping old ones, and commits that people ask for."""
