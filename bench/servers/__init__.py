"""Origins that answer, and the webhook, each a process of its own."""
