"""Texts that are what they are, in places where plugins take templates."""

_DOLLAR = "${literal_dollar ?? $}"


def literal(text: str) -> str:
    """Return a text as a template that stands for it."""
    return text.replace("$", _DOLLAR)
