"""Sockets: where connections may lead, how they are opened, and what sockets say of their ends."""
