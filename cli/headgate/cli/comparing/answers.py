"""Both gateways asked, and where their answers differ, with the annotations that probably are why."""

import asyncio
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple
from urllib.parse import urlsplit

from aiohttp import ClientError, ClientSession, ClientTimeout, TCPConnector
from yarl import URL

from headgate.cli.comparing.requests import ProbeRequest

_PARALLEL: Final = 8
_TIMEOUT_S: Final = 20.0
_BODY: Final = 64 << 10
_OWN: Final = frozenset(
    (
        "age",
        "alt-svc",
        "connection",
        "content-length",
        "date",
        "etag",
        "expires",
        "keep-alive",
        "last-modified",
        "server",
        "transfer-encoding",
        "via",
        "x-headgate-reason",
        "x-request-id",
    )
)
"""Headers that differ from answer to answer, or from one server to another, and mean nothing."""
_WHY: Final[tuple[tuple[str, tuple[str, ...]], ...]] = (
    ("redirect", ("redirect", "app-root", "www", "trailing-slash", "signin", "error-page")),
    ("refusal", ("auth", "source-range", "satisfy", "limit-", "modsecurity", "snippet")),
    ("path", ("rewrite", "regex", "alias", "default-backend", "canary", "snippet")),
    ("error", ("backend", "proxy-", "errors", "limit-", "service-upstream", "upstream", "snippet")),
    ("access-control", ("cors",)),
    ("set-cookie", ("affinity", "session-cookie", "cookie")),
    ("header", ("headers", "snippet", "hsts", "proxy-redirect")),
)
"""What kind of difference, and parts of the names of annotations that make it."""


class Answer(NamedTuple):
    """What a gateway answered, without the body."""

    status: int
    """0: it did not answer."""
    headers: Mapping[str, str]
    """By lower-case name, without those that mean nothing."""
    location: str
    """Without the address of the gateway."""
    error: str = ""


class Difference(NamedTuple):
    """One thing that differs."""

    request: str
    object: str
    """`Ingress default/web`; empty for a recorded request."""
    what: str
    """`status`, `location` or `header NAME`."""
    old: str
    new: str
    why: tuple[str, ...]
    """Annotations of the object that may be the reason."""


async def compare(
    requests: Sequence[ProbeRequest], old: str, new: str, annotations: Mapping[str, Iterable[str]]
) -> list[Difference]:
    """Send requests to both gateways, a few at once, and return what differs.

    Args:
        requests: to be sent.
        old: base URL of one gateway: `http://10.0.0.1`.
        new: base URL of the other one.
        annotations: names of annotations by the object that has them.
    """
    gate, differences = asyncio.Semaphore(_PARALLEL), []
    timeout = ClientTimeout(total=_TIMEOUT_S)
    async with ClientSession(connector=TCPConnector(ssl=False), timeout=timeout, auto_decompress=False) as session:

        async def both(request: ProbeRequest) -> list[Difference]:
            async with gate:
                answers = await asyncio.gather(_ask(session, old, request), _ask(session, new, request))
            name = _object(request)
            return list(_differences(request, name, *answers, tuple(annotations.get(name, ()))))

        for found in await asyncio.gather(*map(both, requests)):
            differences += found
    return differences


def _object(request: ProbeRequest) -> str:
    source = request.source
    return f"{source.kind} {source.namespace}/{source.name}" if source is not None else ""


async def _ask(session: ClientSession, base: str, request: ProbeRequest) -> Answer:
    url = URL(base.rstrip("/") + request.target, encoded=True)
    try:
        async with session.request(
            request.method, url, headers={"Host": request.host}, allow_redirects=False
        ) as response:
            await response.content.read(_BODY)
            names = dict.fromkeys(name.lower() for name in response.headers)
            headers = {name: ", ".join(response.headers.getall(name)) for name in names if name not in _OWN}
            location = _without_address(headers.pop("location", ""), base, request.host)
            return Answer(response.status, headers, location)
    except (ClientError, TimeoutError, ValueError) as error:
        return Answer(0, {}, "", f"no answer: {type(error).__name__}")


def _without_address(location: str, base: str, host: str) -> str:
    """Return a Location in which the gateway's own address stands as the host: they listen at different ones."""
    own = urlsplit(base).netloc
    return location.replace(f"//{own}", f"//{host}")


def _differences(
    request: ProbeRequest, name: str, old: Answer, new: Answer, annotations: tuple[str, ...]
) -> Iterator[Difference]:
    def differing(what: str, kind: str, before: str, after: str) -> Difference:
        return Difference(str(request), name, what, before, after, explaining(kind, annotations))

    if old.status != new.status:
        shown = [answer.error or str(answer.status) for answer in (old, new)]
        yield differing("status", _kind(old.status, new.status), *shown)
    if old.location != new.location:
        yield differing("location", "redirect", old.location or "-", new.location or "-")
    if old.status != new.status:
        return  # headers of different answers differ in any case
    for header in sorted(old.headers.keys() | new.headers.keys()):
        before, after = (_comparable(header, answer.headers.get(header, "-")) for answer in (old, new))
        if before != after:
            kind = next((kind for kind, _ in _WHY if header.startswith(kind)), "header")
            yield differing(f"header {header}", kind, before, after)


def _comparable(header: str, value: str) -> str:
    """Return a header without what is made for each answer: of cookies the names count."""
    return value.partition("=")[0] if header == "set-cookie" else value


def _kind(old: int, new: int) -> str:
    statuses = {old, new}
    if any(300 <= status < 400 for status in statuses):
        return "redirect"
    if statuses & {401, 403, 429}:
        return "refusal"
    return "path" if 404 in statuses else "error"


def explaining(kind: str, annotations: Iterable[str]) -> tuple[str, ...]:
    """Return the annotations that may be the reason of a kind of difference."""
    parts = dict(_WHY).get(kind, ())
    return tuple(name for name in annotations if any(part in name.rpartition("/")[2] for part in parts))
