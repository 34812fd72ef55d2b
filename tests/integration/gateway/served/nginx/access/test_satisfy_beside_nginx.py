"""`satisfy` in nginx and here: every mix of address lists, passwords, a service that is asked and a page to sign in.

The locations are those that ingress-nginx writes (`test/e2e/annotations/satisfy.go` has two of them).
"""

import asyncio
import base64
import itertools
import re
from pathlib import Path
from typing import NamedTuple

import pytest

from fakes.gateway.proxied import Client, Conversation
from fakes.gateway.served import asking, read_answer
from fakes.peers.nginx import needs_nginx, nginx
from fakes.translator.applied import World, secret, world
from fakes.translator.nginx import ADOPTED, NGINX_CLASS, classed

pytestmark = needs_nginx

REALM = "test basic auth"
HERE, ELSEWHERE = "127.0.0.0/8", "192.0.2.0/24"
SIGN_IN = "http://$host/auth/start"


async def judge(conversation: Conversation) -> None:
    """A service that answers what the request wants it to."""
    while True:
        head, _ = await conversation.request()
        wanted = re.search(rb"\r\nX-Judge: (\d+)", head, re.IGNORECASE)
        challenge = b"WWW-Authenticate: Basic realm=service\r\n" if wanted and wanted[1] == b"401" else b""
        status = wanted[1] if wanted else b"200"
        await conversation.send(b"HTTP/1.1 %b It\r\n%bContent-Length: 0\r\n\r\n" % (status, challenge))


class Mix(NamedTuple):
    """What one location asks for."""

    satisfy: str
    allowed: str
    denied: str
    has_basic: bool
    is_asked: bool
    has_page: bool

    @property
    def host(self) -> str:
        names = (self.satisfy, *(_short(each) for each in (self.allowed, self.denied)))
        flags = "".join(str(int(flag)) for flag in (self.has_basic, self.is_asked, self.has_page))
        return f"{'-'.join(names)}-{flags}.example"

    def annotations(self, auth_port: int) -> dict[str, str]:
        lists = {"allowlist_source_range": self.allowed, "denylist_source_range": self.denied}
        found = {name: value for name, value in lists.items() if value} | {"satisfy": self.satisfy}
        if self.has_basic:
            found |= {"auth_type": "basic", "auth_secret": "people", "auth_realm": REALM}
        if self.is_asked:
            found["auth_url"] = f"http://127.0.0.1:{auth_port}/check"
        if self.has_page:
            found["auth_signin"] = SIGN_IN
        return found

    def server(self, folder: Path, auth_port: int, port: int) -> str:
        lines = [f"deny {self.denied};"] if self.denied else []
        lines += [f"allow {self.allowed}; deny all;"] if self.allowed else []
        lines += ["auth_request /_auth;"] if self.is_asked else []
        lines += ["error_page 401 = /_page;"] if self.has_page else []
        lines += [f'auth_basic "{REALM}"; auth_basic_user_file {folder}/people;'] if self.has_basic else []
        auth = (
            f"proxy_pass_request_body off; proxy_set_header Content-Length ''; proxy_pass http://127.0.0.1:{auth_port};"
        )
        return f"""server {{ listen 127.0.0.1:PORT; server_name {self.host};
            location = /_auth {{ internal; {auth} }}
            location = /_page {{ internal; return 302 http://$host/auth/start?rd=x; }}
            location / {{ {" ".join(lines)} satisfy {self.satisfy}; proxy_pass http://127.0.0.1:{port}; }} }}"""


def _short(network: str) -> str:
    return {"": "none", HERE: "here", ELSEWHERE: "else"}[network]


MIXES = [
    Mix(*each)
    for each in itertools.product(
        ("any", "all"), ("", HERE, ELSEWHERE), ("", HERE, ELSEWHERE), (False, True), (False, True), (False, True)
    )
    if each[4] or not each[5]
]
ASKS = [(password, verdict) for password in ("", "pwd", "bad") for verdict in ("200", "401", "403", "500")]


async def seen(port: int, mix: Mix, password: str, verdict: str) -> tuple[int, bool, str]:
    """Return the status, whether a 401 asks for the realm, and where the client is sent, up to the parameters.

    nginx leaves the challenge on other answers too, where it says nothing.
    """
    client = Client(*await asyncio.open_connection("127.0.0.1", port))
    headers = {"X_Judge": verdict}
    if password:
        headers["Authorization"] = f"Basic {base64.b64encode(f'uname:{password}'.encode()).decode()}"
    await client.send(asking("/x?a=b", host=mix.host, **headers))
    got = await read_answer(client)
    client.close()
    return got.status, got.status == 401 and REALM in got["www-authenticate"], got["location"].partition("?")[0]


async def difference(made: World, port: int, mix: Mix, password: str, verdict: str) -> str:
    theirs = await seen(port, mix, password, verdict)
    ours = await seen(made.proxy.proxy.port, mix, password, verdict)
    return "" if theirs == ours else f"{mix} {password or '-'} {verdict}: nginx {theirs}, here {ours}"


async def test_requests_come_in_where_nginx_lets_them_in(tmp_path: Path) -> None:
    (tmp_path / "people").write_text("uname:{PLAIN}pwd\n")
    async with world("one", auth=judge, settings=ADOPTED) as made:
        made.proxy.apply(NGINX_CLASS, secret("people", auth="uname:{PLAIN}pwd"))
        auth = made.port("auth")
        made.proxy.apply(*(classed(f"web-{n}", host=mix.host, **mix.annotations(auth)) for n, mix in enumerate(MIXES)))
        servers = "server_names_hash_bucket_size 128;" + "\n".join(
            mix.server(tmp_path, auth, made.port("one")) for mix in MIXES
        )
        async with nginx(tmp_path, "return 404;", servers) as port:
            found = [await difference(made, port, mix, *asked) for mix in MIXES for asked in ASKS]
    assert [each for each in found if each] == []


@pytest.mark.parametrize("value", ["any", "all"])
async def test_satisfy_alone_keeps_nobody_out_whatever_it_was(value: str) -> None:
    async with world("one", settings=ADOPTED) as made:
        made.proxy.apply(NGINX_CLASS, classed(satisfy="all"))
        for each in (value, "any", "all"):
            made.proxy.apply(classed(satisfy=each))
            assert await made.proxy.bodies(1) == ["one"]
