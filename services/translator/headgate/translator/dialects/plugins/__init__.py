"""Plugins of Headgate's own kind, which routes name."""

from headgate.translator.dialects.plugins.dialect import PLUGINS

__all__ = ["PLUGINS"]
