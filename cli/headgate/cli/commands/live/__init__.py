"""Commands that ask gateways what goes on now."""
