"""Manifests in files and folders as a source of objects."""
