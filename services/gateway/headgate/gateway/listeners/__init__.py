"""The ports of the gateway's own: HTTP, HTTPS, and how stream routes share the latter."""
