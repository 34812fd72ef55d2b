"""Calls of gRPC for requests of HTTP."""
