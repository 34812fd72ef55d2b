"""The HTTP API: questions and their answers as JSON, events as they come, and the document that describes both."""
