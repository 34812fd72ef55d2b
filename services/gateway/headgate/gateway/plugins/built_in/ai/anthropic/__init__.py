"""Requests in the form of Anthropic, for providers that take that of OpenAI alone."""
