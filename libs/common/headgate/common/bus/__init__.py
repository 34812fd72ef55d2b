"""The connection to NATS, and what goes over it beside the stores."""
