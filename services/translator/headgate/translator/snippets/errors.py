"""The errors of snippets.

SnippetError    a text that is no configuration of nginx, or a directive that has no meaning here; with its place
"""


class SnippetError(ValueError):
    """A snippet cannot be followed. The text says where and why, on one line."""

    def __init__(self, message: str, line: int, column: int = 0) -> None:
        at = f", column {column}" if column else ""
        super().__init__(f"line {line}{at}: {message}")
        self.message = message
        """Without the place."""
        self.line = line
        """Counted from 1."""
        self.column = column
        """Counted from 1; 0 if the line alone says it."""
