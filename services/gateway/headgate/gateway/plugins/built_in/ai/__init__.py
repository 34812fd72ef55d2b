"""Plugins in front of large language models."""
