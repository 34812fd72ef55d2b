"""Configurations of the plugins for large language models."""
