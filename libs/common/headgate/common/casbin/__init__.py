"""Casbin's models and policies, read and followed by code of our own.

Each author of a route may write a model, so a matcher is a grammar of comparisons and a table of functions, and
never an expression of Python. Texts are bounded when they are read, and so is the work of each decision.
"""
