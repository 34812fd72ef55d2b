"""Manifests and clusters as tables, without any service."""
