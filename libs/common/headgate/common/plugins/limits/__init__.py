"""How much may pass, and when requests are not sent at all."""
