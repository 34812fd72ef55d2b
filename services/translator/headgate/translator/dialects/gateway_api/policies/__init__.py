"""Policies of Gateway API: how TLS is spoken with Services."""
