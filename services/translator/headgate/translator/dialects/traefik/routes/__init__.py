"""Routes: IngressRoutes to claims of hosts and paths."""
