"""The plugin `ext-authz`."""
