"""Requests and answers in the one form that both versions of HTTP share, and what changes in them on the way."""
