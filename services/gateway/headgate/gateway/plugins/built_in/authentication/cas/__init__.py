"""The plugin `cas-auth`."""
