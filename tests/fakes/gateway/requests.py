"""Requests as routes look at them, without a connection."""

from headgate.gateway.proxy.heads.facts import RequestFacts


class AskedRequest:
    """A request source that notes whether it was looked at."""

    def __init__(self, facts: RequestFacts) -> None:
        self._facts = facts
        self.looked_at = False

    def facts(self) -> RequestFacts:
        self.looked_at = True
        return self._facts

    def note_upstream(self, state: object) -> None:
        """Pass over."""


def request_facts(
    target: str = "/",
    *,
    method: str = "GET",
    scheme: str = "http",
    host: str = "foo.com",
    headers: dict[str, str] | tuple[tuple[str, str], ...] = (),
    client: str = "192.0.2.1",
    body: bytes | None = None,
) -> RequestFacts:
    """What is known of a request; headers without Host."""
    pairs = headers.items() if isinstance(headers, dict) else headers
    lines = "".join(f"{name}: {value}\r\n" for name, value in pairs)
    facts = RequestFacts(
        method.encode(), scheme.encode(), host.encode(), target.encode(), lines.encode(), client.encode()
    )
    facts.body = body
    return facts


def request(target: str = "/", **told: object) -> AskedRequest:
    """A request as routers and routes are asked about; arguments as of `request_facts`."""
    return AskedRequest(request_facts(target, **told))  # type: ignore[arg-type]


PLAIN = request()
"""For what does not depend on the request."""
