"""ApisixRoutes: their rules, what requests match, and streams."""
