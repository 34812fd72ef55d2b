"""Numbers in a configuration that may depend on the request."""

import math

from headgate.gateway.plugins.interface.messages import Request
from headgate.gateway.plugins.kit.patterns import Template


class BadNumber(ValueError):
    """A request makes something else of a number; the text says what."""


class NumberReader:
    """A number, or a template that gives one."""

    __slots__ = ("_least", "_template", "_value")

    def __init__(self, written: float | str, *, least: float = 1e-9) -> None:
        self._value = 0.0 if isinstance(written, str) else written
        self._template = Template(written) if isinstance(written, str) else None
        self._least = least

    def read(self, request: Request) -> float:
        """Return the number. Raises BadNumber."""
        if self._template is None:
            return self._value
        text = self._template.render(request)
        try:
            value = float(text)
        except ValueError:
            raise BadNumber(f"{text[:40]!r} is no number to limit by") from None
        if not math.isfinite(value) or value < self._least:
            raise BadNumber(f"{value:g} is no number to limit by")
        return value
