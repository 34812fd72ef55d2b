"""Cases that Traefik's own tests of middlewares have (`pkg/middlewares`), from manifests to the wire."""

import asyncio
import itertools
import json
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import pytest

from fakes.gateway.proxied import Conversation, Script
from fakes.gateway.served import Got, read_answer
from fakes.gateway.tls import Authority, unverified
from fakes.translator.applied import World, secret, world
from fakes.translator.traefik import middleware, route, rule
from fakes.translator.traefik_cases import listed
from headgate.gateway.proxy.config import ProxyConfig

_CASES = Path(__file__).parent / "cases/middlewares.yaml"
_TRUSTING = ProxyConfig(trusted_proxies=("203.0.113.9",))
"""What a client says of the scheme is believed, as nothing stands between the middleware and Traefik's test."""


class Case(NamedTuple):
    """A middleware, what is asked, and what is expected; the YAML file says more."""

    spec: Any
    url: str = "/"
    method: str = "GET"
    headers: tuple[str, ...] = ()
    body: str = ""
    client: str = "203.0.113.9"
    answer: Any = None
    answers: Any = None
    peer: Any = None
    users: str | None = None
    refused: bool = False
    status: int = 200
    asked: int | None = None
    target: str = ""
    sends: Any = None
    says: Any = None
    text: str | None = None
    peer_target: str = ""
    peer_method: str = ""
    peer_sends: Any = None


@pytest.mark.parametrize("case", listed(_CASES, Case))
async def test_a_middleware_does_what_it_does_in_traefik(case: Case) -> None:
    scripts = {"web": _saying(case.answers or [case.answer or {}]), "peer": _saying([case.peer or {}])}
    async with world(proxy_protocol=True, config=_TRUSTING, **scripts) as made:
        made_by = _middleware(case, made)
        is_secure = case.url.startswith("https:")
        using = route(rule("PathPrefix(`/`)", middlewares=["m"]), spec={"tls": {}} if is_secure else {})
        made.proxy.apply(made_by, using)
        assert bool(made.proxy.errors(made_by)) is case.refused
        got = await _ask(made, case)
        if case.refused:
            assert got.status == 503
            return
        assert got.status == case.status
        assert _wrong(case.says, got) == {}
        assert case.text is None or got.body.decode() == case.text
        asked = len(made.servers["web"].heads)
        assert case.asked is None or asked == case.asked
        assert not case.peer_method or made.servers["peer"].heads[-1].startswith(f"{case.peer_method} ".encode())
        for name, target, sends in (("web", case.target, case.sends), ("peer", case.peer_target, case.peer_sends)):
            if target or sends:
                head = made.servers[name].heads[-1]
                assert _wrong(sends, Got(head, b"")) == {}
                assert not target or head.split(b" ")[1].decode() == target


def _middleware(case: Case, made: World) -> Any:
    """Return the Middleware of a case, with the Secret that it names in place."""
    if case.users is not None:
        made.proxy.apply(secret("users", users=case.users))
    return middleware("m", **json.loads(json.dumps(case.spec).replace("PEER", str(made.port("peer")))))


def _saying(answers: list[Any]) -> Script:
    """Return a server that gives its answers one after the other, and the last one from then on."""
    left = iter([*answers[:-1], *itertools.repeat(answers[-1], 1000)])

    async def answer(conversation: Conversation) -> None:
        while True:
            await conversation.request()
            said = next(left)
            await asyncio.sleep(said.get("after_s", 0))
            await conversation.send(_answer(said))

    return answer


def _answer(said: Any) -> bytes:
    body = said.get("body", "")
    size = () if said.get("status") == 304 or said.get("is_head") else (f"Content-Length: {len(body)}",)
    lines = [f"HTTP/1.1 {said.get('status', 200)} -", *said.get("headers", ()), *size, "", body]
    return "\r\n".join(lines).encode()


def _wrong(expected: Any, got: Got) -> dict[str, Any]:
    """Return the headers that are other than expected, as they are."""
    listed = {name: value if isinstance(value, list) else [value] for name, value in (expected or {}).items()}
    values = {name: (got.all(name) or [None], wanted) for name, wanted in listed.items()}
    return {name: found for name, (found, wanted) in values.items() if found != wanted}


async def _ask(made: World, case: Case) -> Got:
    url = urlsplit(case.url)
    is_secure, netloc = url.scheme == "https", url.netloc or "example.com"
    if is_secure:
        made.proxy.proxy.present(url.hostname or "", Authority().issue(url.hostname or ""))
    query = f"?{url.query}" if url.query else ""
    lines = [f"{case.method} {url.path or '/'}{query} HTTP/1.1", f"Host: {netloc}", *case.headers]
    if case.body or case.method == "POST":
        lines.append(f"Content-Length: {len(case.body)}")
    lines += ["Connection: close", "", case.body]
    client = await made.proxy.proxy.connect(port=made.proxy.proxy.https_port if is_secure else 0)
    await client.send(f"PROXY TCP4 {case.client} 203.0.113.1 5555 80\r\n".encode())
    if is_secure:
        await client.writer.start_tls(unverified(), server_hostname=url.hostname)
    await client.send("\r\n".join(lines).encode())
    return await read_answer(client, has_body=case.method != "HEAD")
