"""Who may come in: the same requests are sent to Debian's nginx and to a gateway with the rules in its plugins."""

import base64
import itertools
import re
from pathlib import Path
from typing import Any

import pytest

from fakes.gateway.proxied import Conversation
from fakes.gateway.served import Got, Served, asking, at, named, origins, read_answer, served, site, to
from fakes.peers.nginx import needs_nginx, nginx

pytestmark = needs_nginx

FILE = "jack:{PLAIN}secret\n"
ADDRESSES: dict[str, tuple[str, dict[str, Any] | None]] = {
    "any address": ("", None),
    "this address": ("allow 127.0.0.1; deny all;", {"whitelist": ["127.0.0.1"]}),
    "other addresses": ("allow 192.0.2.0/24; deny all;", {"whitelist": ["192.0.2.0/24"]}),
    "not this address": ("deny 127.0.0.1;", {"blacklist": ["127.0.0.1"]}),
    "not others": ("deny 192.0.2.0/24;", {"blacklist": ["192.0.2.0/24"]}),
}
VERDICTS = ("200", "204", "401", "403", "302", "500")


async def tell(conversation: Conversation) -> None:
    """An upstream that answers with the user that it was told."""
    while True:
        head, _ = await conversation.request()
        await conversation.send(named(b", ".join(re.findall(rb"(?i)\r\nX-User: (\S*)", head))))


async def judge(conversation: Conversation) -> None:
    """An authentication service: the request says itself what it answers."""
    while True:
        head, _ = await conversation.request()
        status = re.search(rb"X-Verdict: (\d+)", head, re.IGNORECASE)
        challenge = b"WWW-Authenticate: Bearer\r\n" if status and status[1] == b"401" else b""
        line = b"HTTP/1.1 %b Verdict\r\nX-User: jack\r\n%b" % (status[1] if status else b"401", challenge)
        await conversation.send(line + (b"\r\n" if b" 204 " in line else b"Content-Length: 0\r\n\r\n"))


def nginx_rules(satisfy: str, addresses: str, *, basic: bool, service: int | None) -> str:
    parts = [f"satisfy {satisfy};", addresses]
    if basic:
        parts.append("auth_basic people; auth_basic_user_file htpasswd;")
    if service is not None:
        parts.append("auth_request /auth; auth_request_set $user $upstream_http_x_user;")
        parts.append("proxy_set_header X-User $user;")
    auth = f"proxy_pass http://127.0.0.1:{service or 1}/check; proxy_pass_request_body off;"
    question = f"location = /auth {{ internal; {auth} proxy_set_header Content-Length ''; }}"
    return f"{question} location / {{ {' '.join(parts)} PROXY }}"


def our_plugins(
    satisfy: str, addresses: dict[str, Any] | None, *, basic: bool, service: int | None
) -> list[tuple[str, dict[str, Any]]]:
    plugins: list[tuple[str, dict[str, Any]]] = []
    if addresses is not None:
        plugins.append(("ip-restriction", addresses))
    if basic:
        plugins.append(("basic-auth", {"htpasswd": FILE, "realm": "people"}))
    if service is not None:
        asked = {"uri": f"http://127.0.0.1:{service}/check", "all_headers": True, "strict_statuses": True}
        plugins.append(("forward-auth", {**asked, "upstream_headers": ["X-User"], "status_on_error": 500}))
    return plugins if satisfy == "all" or len(plugins) < 2 else [("satisfy-any", dict(plugins))]


async def ask(proxy: Served, port: int, **headers: str) -> Got:
    client = await proxy.connect(port=port)
    await client.send(asking("/p?q=1", **headers))
    got = await read_answer(client)
    client.close()
    return got


def seen(got: Got) -> tuple[int, set[str], bytes]:
    """What counts: status, challenges of a 401, and the user that the upstream was told.

    nginx leaves a challenge on a 500, which no client looks at.
    """
    challenges = {challenge.partition(" ")[0] for challenge in got.all("www-authenticate")}
    return got.status, challenges if got.status == 401 else set(), got.body if got.status == 200 else b""


@pytest.mark.parametrize("satisfy", ["all", "any"])
@pytest.mark.parametrize("addresses", ADDRESSES)
@pytest.mark.parametrize(("basic", "asks"), [(True, False), (False, True), (True, True)])
async def test_who_may_come_in_is_the_same(
    tmp_path: Path, satisfy: str, addresses: str, *, basic: bool, asks: bool
) -> None:
    theirs, ours = ADDRESSES[addresses]
    (tmp_path / "htpasswd").write_text(FILE)
    async with origins(tell, judge) as (origin, service):
        port = service.port if asks else None
        rules = nginx_rules(satisfy, theirs, basic=basic, service=port)
        rules = rules.replace("PROXY", f"proxy_pass http://127.0.0.1:{origin.port};")
        plugins = our_plugins(satisfy, ours, basic=basic, service=port)
        async with (
            nginx(tmp_path, rules) as nginx_port,
            served(site(to("up", plugins=plugins)), at(origin.port)) as proxy,
        ):
            for password, verdict in itertools.product((None, "wrong", "secret"), VERDICTS if asks else ("",)):
                headers = {"X_User": "forged"}
                if password is not None:
                    headers["Authorization"] = f"Basic {base64.b64encode(f'jack:{password}'.encode()).decode()}"
                if verdict:
                    headers["X_Verdict"] = verdict
                theirs_seen = seen(await ask(proxy, nginx_port, **headers))
                assert (headers, seen(await ask(proxy, proxy.port, **headers))) == (headers, theirs_seen)
