"""What is wrong with a rule, and where.

RuleError   a rule that cannot be read, or that has no place in the table
"""


class RuleError(ValueError):
    """A rule is wrong at one place.

    Args:
        rule: the whole text.
        offset: of the place, in characters from 0.
        reason: what is wrong there and what would be right, without the place.
    """

    def __init__(self, rule: str, offset: int, reason: str) -> None:
        self.line = rule.count("\n", 0, offset) + 1
        """Counted from 1."""
        self.column = offset - rule.rfind("\n", 0, offset)
        """In characters of its line, counted from 1."""
        self.reason = reason
        place = f"column {self.column}" if self.line == 1 else f"line {self.line}, column {self.column}"
        super().__init__(f"{place}: {reason}")
