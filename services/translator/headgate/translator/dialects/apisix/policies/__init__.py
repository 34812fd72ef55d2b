"""Policies: what they say, and about which objects."""
