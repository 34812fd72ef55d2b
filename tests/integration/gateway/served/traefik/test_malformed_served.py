"""Objects that are written wrongly, among many good ones."""

from typing import Any

import pytest

from fakes.translator.applied import world
from fakes.translator.traefik import resource, route, rule

GOOD = 100


@pytest.mark.parametrize(
    "bad",
    [
        resource("IngressRoute", "bad", "text"),
        resource("IngressRoute", "bad", {"routes": "text"}),
        resource("IngressRoute", "bad", {"routes": [{"match": 5}]}),
        resource("IngressRoute", "bad", {"routes": [None, {"match": "Host(`"}]}),
        resource("IngressRoute", "bad", {"routes": [rule("Host(`bad.test`)", {"name": "web", "port": {}})]}),
        resource("IngressRouteTCP", "bad", {"routes": [{"match": ["HostSNI(`*`)"]}]}),
        resource("Middleware", "bad", {"headers": "text"}),
        resource("TraefikService", "bad", {"weighted": {"services": {"name": "web"}}}),
        resource("TLSOption", "bad", {"minVersion": 12}),
        resource("ServersTransport", "bad", {"rootCAs": "text"}),
    ],
    ids=lambda bad: f"{bad['kind']} {bad['spec']}",
)
async def test_one_malformed_object_among_many_costs_itself_and_is_named(bad: Any) -> None:
    hosts = [f"h{number}.test" for number in range(GOOD)]
    async with world("web") as made:
        made.proxy.apply(bad, *(route(rule(f"Host(`{host}`)"), name=host) for host in hosts))
        assert made.proxy.errors(bad)
        assert [await made.proxy.status(host=host) for host in hosts[:: GOOD // 4]] == [200] * 4
