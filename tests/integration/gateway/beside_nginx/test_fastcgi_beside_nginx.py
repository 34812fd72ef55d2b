"""FastCGI: the same requests go through Debian's nginx and through a gateway to the same PHP."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from fakes.gateway.proxied import Client
from fakes.gateway.served import Got, asking, at, read_answer, served, site, to
from fakes.peers.fastcgi import needs_php, php, php_script
from fakes.peers.nginx import needs_nginx, nginx

pytestmark = [needs_nginx, needs_php]

TELLING = """
header('X-Name: value'); setcookie('a', 'b c');
http_response_code((int) ($_GET['status'] ?? 200));
if (isset($_GET['to'])) header('Location: ' . $_GET['to']);
echo json_encode([$_SERVER, bin2hex(file_get_contents('php://input')), $_POST]);
"""
PARAMS = {"SCRIPT_FILENAME": "FOLDER/tell.php", "X_MADE": "$request_method-${uri}-$arg_q$is_args$http_x_one"}
OF_THE_PROXY = {
    "DOCUMENT_ROOT",
    "HTTP_CONNECTION",
    "HTTP_TRANSFER_ENCODING",
    "HTTP_X_REAL_IP",
    "HTTP_X_REQUEST_ID",
    "REMOTE_PORT",
    "REQUEST_TIME",
    "REQUEST_TIME_FLOAT",
    "SERVER_NAME",
    "SERVER_PORT",
    "SERVER_SOFTWARE",
}
"""Parameters that differ from proxy to proxy, and from request to request."""
REQUESTS = {
    "a path": asking("/a/b.html?q=1&r=%20"),
    "a folder": asking("/a/?q=1"),
    "the root": asking("/"),
    "escapes": asking("/%61%20b/%c3%bc?q=%41"),
    "several slashes": asking("/a//b///c"),
    "headers": asking("/", X_One="1", User_Agent="agent", Accept="*/*", Cookie="a=b; c=d"),
    "credentials": asking("/", Authorization="Basic dXNlcjpwYXNz"),
    "a form": asking("/", "POST", body=b"a=b&c=d", Content_Type="application/x-www-form-urlencoded"),
    "bytes": asking("/", "POST", body=bytes(range(256)) * 300, Content_Type="application/octet-stream"),
    "nothing posted": asking("/", "POST", body=b""),
    "put": asking("/", "PUT", body=b"x"),
    "delete": asking("/", "DELETE"),
    "head": asking("/?q=1", "HEAD"),
    "not found": asking("/?status=404"),
    "an error": asking("/?status=503"),
    "a redirect": asking("/?to=/other"),
    "no body": asking("/?status=204"),
}
Ask = Callable[[bytes], Awaitable[tuple[Got, Got]]]


@pytest.fixture
async def both(tmp_path: Path) -> AsyncIterator[Ask]:
    """What sends a request to nginx and to a gateway, both before the same PHP."""
    params = {name: value.replace("FOLDER", str(tmp_path)) for name, value in PARAMS.items()}
    php_script(tmp_path, "tell.php", TELLING)
    directives = "".join(f'fastcgi_param {name} "{value}";' for name, value in params.items())
    async with php() as port:
        server = f"""location / {{
            include /etc/nginx/fastcgi_params; fastcgi_index index.php; {directives} fastcgi_pass 127.0.0.1:{port};
        }}"""
        settings = {"index": "index.php", "params": tuple(params.items())}
        upstream = at(port, protocol="fcgi", fastcgi=settings)
        async with nginx(tmp_path, server) as other, served(site(to("up", needs_length=True)), upstream) as proxy:

            async def ask(data: bytes) -> tuple[Got, Got]:
                has_body = not data.startswith(b"HEAD")
                found = []
                for one in (other, proxy.port):
                    client = Client(*await asyncio.open_connection("127.0.0.1", one))
                    await client.send(data)
                    found.append(await read_answer(client, has_body=has_body))
                    client.close()
                return found[0], found[1]

            yield ask


def told(got: Got) -> Any:
    """Return what PHP was sent, without what differs from proxy to proxy."""
    if not got.body:
        return None
    server, body, form = json.loads(got.body)
    kept = {key: value for key, value in server.items() if key not in OF_THE_PROXY and "X_FORWARDED" not in key}
    return kept, body, form


@pytest.mark.parametrize("name", REQUESTS)
async def test_an_application_gets_and_gives_the_same(both: Ask, name: str) -> None:
    theirs, ours = await both(REQUESTS[name])
    assert ours.status == theirs.status
    assert told(ours) == told(theirs)
    for header in ("X-Name", "Set-Cookie", "Location", "Content-Type", "X-Powered-By"):
        assert ours.all(header) == theirs.all(header)


async def test_a_body_of_unknown_length_has_one_for_the_application(both: Ask) -> None:
    chunked = asking("/", "POST", Transfer_Encoding="chunked", Content_Type="text/plain") + b"3\r\nabc\r\n0\r\n\r\n"
    theirs, ours = await both(chunked)
    assert told(theirs)[1] == told(ours)[1] == b"abc".hex()
    assert told(theirs)[0]["CONTENT_LENGTH"] == told(ours)[0]["CONTENT_LENGTH"] == "3"


async def test_addresses_that_a_client_claims_are_not_passed_on(both: Ask) -> None:
    found = [
        json.loads(got.body)[0]["HTTP_X_FORWARDED_FOR"] for got in await both(asking("/", X_Forwarded_For="192.0.2.1"))
    ]
    assert found == ["192.0.2.1", "127.0.0.1"]
