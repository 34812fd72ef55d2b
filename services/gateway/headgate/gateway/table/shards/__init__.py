"""One shard of a table: what a gateway keeps of it, and what it answers for the rest."""
