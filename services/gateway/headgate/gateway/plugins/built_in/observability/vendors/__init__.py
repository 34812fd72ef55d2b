"""Loggers of single products."""
