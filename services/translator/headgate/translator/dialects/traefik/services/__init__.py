"""Services as backends: what a reference to a Service says of its upstream, and of several that share requests."""
