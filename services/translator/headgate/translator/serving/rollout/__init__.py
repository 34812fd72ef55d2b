"""A new table that some replicas serve before all do."""
