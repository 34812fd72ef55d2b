"""Processes that record while something else is measured."""
