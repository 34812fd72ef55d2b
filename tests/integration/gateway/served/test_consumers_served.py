"""Consumers from the table's entries to the wire, and what of them upstreams, limits and the log are told."""

import json
import os
from typing import Any

import pytest

from fakes.gateway.proxied import OK, answering
from fakes.gateway.served import at, origins, sealed, served, site, to
from fakes.gateway.table import ORIGIN
from headgate.common.table import Consumer, ConsumerGroup, Credential, PluginUse
from headgate.gateway.observability.access_log import AccessLog

KEY_AUTH = [("key-auth", {})]
ONE = {"count": 1, "time_window": 600, "rejected_code": 429}


def known(name: str, *plugins: tuple[str, dict[str, Any]], **fields: Any) -> Consumer:
    """A consumer whose sealed key is its name."""
    use = PluginUse(name="key-auth", secrets={"key": sealed(name.encode())})
    uses = tuple(PluginUse(name=plugin, config=config) for plugin, config in plugins)
    return Consumer(
        key=f"c1/shop/{name}",
        name=f"shop_{name}",
        credentials=(Credential(use=use, name=f"{name}-key"),),
        plugins=uses,
        provenance=ORIGIN.model_copy(update={"name": name}),
        **fields,
    )


async def test_an_upstream_hears_from_the_gateway_alone_who_asks() -> None:
    async with (
        origins(answering(OK)) as (origin,),
        served(site(to("up", plugins=KEY_AUTH)), at(origin.port), known("jack", group="gold")) as proxy,
    ):
        assert (await proxy.get()).status == 401
        assert (await proxy.get(apikey="jack", X_Consumer_Username="admin", X_Consumer_Custom_Id="1")).status == 200
        [head] = origin.heads
    lines = [line for line in head.split(b"\r\n") if line.lower().startswith((b"x-consumer", b"x-credential"))]
    assert lines == [
        b"X-Consumer-Username: shop_jack",
        b"X-Consumer-Group-Id: gold",
        b"X-Credential-Identifier: jack-key",
    ]


async def test_consumers_come_change_and_go_with_the_table() -> None:
    async with origins(answering(OK)) as (origin,), served(site(to("up", plugins=KEY_AUTH)), at(origin.port)) as proxy:
        assert (await proxy.get(apikey="jack")).status == 401
        jack = known("jack")
        proxy.put(jack)
        assert (await proxy.get(apikey="jack")).status == 200
        proxy.put(jack.model_copy(update={"credentials": known("other").credentials}))
        assert [(await proxy.get(apikey=key)).status for key in ("jack", "other")] == [401, 200]
        proxy.remove("consumers", jack.key)
        assert (await proxy.get(apikey="other")).status == 401


async def test_limits_of_consumers_and_groups_hold_over_routes_and_swaps() -> None:
    group = ConsumerGroup(
        key="c1/shop/gold",
        name="gold",
        plugins=(PluginUse(name="limit-count", config=ONE),),
        provenance=ORIGIN,
    )
    routes = site(to("up", path="/a", plugins=KEY_AUTH), to("up", path="/b", plugins=KEY_AUTH))
    people = (known("jack", ("limit-count", ONE)), known("jill", group="gold"), known("joan", group="gold"))
    async with origins(answering(OK)) as (origin,), served(routes, at(origin.port), group, *people) as proxy:
        assert [(await proxy.get(path, apikey="jack")).status for path in ("/a", "/b")] == [200, 429]
        assert [(await proxy.get("/a", apikey=key)).status for key in ("jill", "joan")] == [200, 429]
        proxy.put(site(to("up", path="/a", plugins=[*KEY_AUTH, ("cors", {})])))
        assert (await proxy.get("/a", apikey="jack")).status == 429


async def test_a_plugin_that_waits_for_the_body_goes_before_the_consumers_plugins() -> None:
    mark = ("response-rewrite", {"headers": {"set": {"X-Plan": "gold"}}})
    use = PluginUse(name="hmac-auth", config={"key_id": "k"}, secrets={"secret_key": sealed(b"s")})
    jack = known("jack", mark).model_copy(update={"credentials": (*known("jack").credentials, Credential(use=use))})
    ways = {"auth_plugins": [{"hmac-auth": {"validate_request_body": True}}, {"key-auth": {}}]}
    routes = site(to("up", plugins=[("multi-auth", ways)]))
    async with origins(answering(OK)) as (origin,), served(routes, at(origin.port), jack) as proxy:
        got = await proxy.post(b"x" * 100_000, apikey="jack")
        assert (got.status, got["x-plan"]) == (200, "gold")


@pytest.mark.parametrize("form", ["combined", "json"])
async def test_the_access_log_names_the_consumer_of_each_request(form) -> None:
    reading, writing = os.pipe()
    log = AccessLog(form, writing)
    jack = known("jack").model_copy(update={"name": 'a "b"'})
    async with (
        origins(answering(OK)) as (origin,),
        served(site(to("up", plugins=KEY_AUTH)), at(origin.port), jack) as proxy,
    ):
        proxy.server.context.access_log = log
        client = await proxy.connect()
        for key in ("jack", "wrong"):
            await client.send(f"GET / HTTP/1.1\r\nHost: a.example\r\napikey: {key}\r\n\r\n".encode())
            await client.answer()
        log.close()
    os.close(writing)
    with os.fdopen(reading) as file:
        first, second = file.read().splitlines()
    if form == "json":
        assert (json.loads(first)["user"], json.loads(second).get("user")) == ("a%20%22b%22", None)
    else:
        assert first.startswith("127.0.0.1 - a%20%22b%22 [")
        assert second.startswith("127.0.0.1 - - [")
