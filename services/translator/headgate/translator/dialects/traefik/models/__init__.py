"""The specs of the kinds, with every field that Traefik's own definitions have."""
