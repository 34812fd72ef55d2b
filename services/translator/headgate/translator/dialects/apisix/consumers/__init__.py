"""Consumers of both vocabularies, and what they are recognised by."""
