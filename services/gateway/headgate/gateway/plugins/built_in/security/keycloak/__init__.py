"""Asking Keycloak."""
