"""A new table that some replicas serve before all do: how these do, beside the others."""
