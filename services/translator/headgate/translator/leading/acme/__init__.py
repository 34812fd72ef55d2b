"""Certificates that are ordered by ACME (RFC 8555), by the translator that leads."""
