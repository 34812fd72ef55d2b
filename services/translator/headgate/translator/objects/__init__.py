"""Dialects as values, and the life cycle of their objects, written once."""
