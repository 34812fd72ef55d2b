"""A module for each command, or for commands that belong together."""
