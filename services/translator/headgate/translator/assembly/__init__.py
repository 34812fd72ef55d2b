"""Fragments of all objects merged into the entries of one table; conflicts are decided here."""
