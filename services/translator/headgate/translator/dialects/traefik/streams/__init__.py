"""IngressRouteTCP and IngressRouteUDP as routes of streams."""
