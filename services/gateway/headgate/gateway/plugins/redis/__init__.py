"""Connections to Redis that all plugins of a worker share."""
