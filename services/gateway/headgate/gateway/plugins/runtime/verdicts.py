"""What `explain` says of a route's plugins; apart from `preview`, so that reading an answer imports no plugin."""

from collections.abc import Callable, Sequence
from typing import Literal

from headgate.common.table import Entry, Route
from headgate.gateway.proxy.heads.facts import RequestFacts


class PluginVerdict(Entry):
    """What one plugin does with a request."""

    name: str
    verdict: Literal["passes", "answers", "unknown", "off"]
    status: int = 0
    """Of the answer."""
    detail: str = ""
    """Why it answers, why that cannot be known, or what it does besides."""


Preview = Callable[[Route, RequestFacts, str], Sequence[PluginVerdict]]
"""Returns verdicts of a route's plugins in the order in which they are asked; the route is known as the text,
`host|route name`."""


def first_answer(verdicts: Sequence[PluginVerdict]) -> PluginVerdict | None:
    """Return the verdict that ends the request before an upstream is asked; None: none is known to."""
    return next((one for one in verdicts if one.verdict == "answers"), None)
