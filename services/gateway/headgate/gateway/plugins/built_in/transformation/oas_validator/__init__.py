"""Comparing requests with OpenAPI documents."""
