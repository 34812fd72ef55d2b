"""What `explain` says of a path, against what the gateway does with it."""

import pytest

from fakes.gateway.proxied import Conversation
from fakes.gateway.served import HOST, at, origins, ports, served, site, to
from headgate.gateway.proxy.config import ProxyConfig
from headgate.gateway.proxy.heads.paths import PathNormalization
from headgate.gateway.table.explaining.explain import explain
from headgate.gateway.table.view import CompilerView

SEGMENTS = ["", ".", "..", "a", "%61", "%2e", "..;", "b%2Fc", "%2f..", "b\\c", "%00", "%zz", "...", ".a"]
PATHS = [f"/{first}/{second}" for first in SEGMENTS for second in SEGMENTS] + ["/", "/a/..", "/a/../..", "/ä"]


async def echo_target(conversation: Conversation) -> None:
    """Answer with the path that arrived."""
    while True:
        target = (await conversation.head()).split(b" ")[1]
        await conversation.send(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(target), target))


@pytest.mark.parametrize("as_traefik", [False, True])
@pytest.mark.parametrize("mode", ["rewrite", "match", "strict", "off"])
async def test_explanations_of_paths_agree_with_the_gateway(mode: PathNormalization, as_traefik: bool) -> None:
    config = ProxyConfig(path_normalization=mode)
    routes = [
        to("up", path=path, plugins=[("response-rewrite", {"headers": {"set": {"x-route": path}}})])
        for path in ("/", "/a", "/b", "/a/a", "/b/c")
    ]
    routes = [route.model_copy(update={"as_traefik": as_traefik}) for route in routes]
    async with origins(echo_target) as servers, served(site(*routes), at(*ports(servers)), config=config) as proxy:
        view = CompilerView(proxy.compiler)
        for path in PATHS:
            told = explain(view, "GET", HOST, f"{path}?q", path_normalization=mode)
            got = await proxy.get(f"{path}?q")
            assert told.verdict.startswith("400") == (got.status == 400), path
            if got.status == 200:
                assert got.body.decode() == f"{told.forwarded_path or told.path}?q"
                assert told.winner == f"{HOST}|{got['x-route']}"
