"""Plugins of consumers and groups, merged over the route's."""

import logging
from typing import Any

import pytest

from headgate.common.table import PluginUse
from headgate.gateway.model.steps import finish
from headgate.gateway.plugins.built_in.catalogue import BUILT_IN
from headgate.gateway.plugins.interface import Plugin, PluginConfig, PluginServices, Request, Response, attach
from headgate.gateway.plugins.interface.consumers import KnownGroup
from headgate.gateway.plugins.runtime.chain import PluginChain
from headgate.gateway.plugins.runtime.registry import PluginRegistry
from unit.gateway.plugins.people import chain_for, consumer, directory, group, with_key
from unit.gateway.plugins.running import REGISTRY, Clock, asked, exchanged, request, unsealed

KEY_AUTH = ("key-auth", {})
LIMIT = {"time_window": 60, "rejected_code": 429}


def known(name: str, *plugins: tuple[str, dict[str, Any]], **fields: Any):
    return consumer(name, ("key-auth", {"key": name}), plugins=plugins, **fields)


async def statuses(chain: PluginChain, *keys: str) -> list[int]:
    return [(await exchanged(chain, with_key(key))).status for key in keys]


async def test_a_consumers_limit_holds_though_the_route_has_none() -> None:
    people = directory(known("jack", ("limit-count", {"count": 1, **LIMIT})), known("jill"))
    chain = chain_for(people, KEY_AUTH)
    assert await statuses(chain, "jack", "jack", "jill", "jill") == [200, 429, 200, 200]


async def test_a_consumers_limit_is_one_for_all_routes() -> None:
    people = directory(known("jack", ("limit-count", {"count": 1, **LIMIT})))
    services = PluginServices(consumers=people, clock=Clock())
    one, other = (
        REGISTRY.chain([PluginUse(name="key-auth")], services, unsealed, scope=f"a|{route}") for route in "rs"
    )
    assert one is not None
    assert other is not None
    assert await statuses(one, "jack") + await statuses(other, "jack") == [200, 429]


async def test_the_consumer_goes_before_its_group_and_the_group_before_the_route() -> None:
    people = directory(
        known("both", ("limit-count", {"count": 1, **LIMIT}), group="gold"),
        known("member", group="gold"),
        known("other", group="only-a-name"),
        group("gold", ("limit-count", {"count": 2, **LIMIT})),
    )
    chain = chain_for(people, KEY_AUTH, ("limit-count", {"count": 3, **LIMIT}))
    for key, limit in (("both", 1), ("member", 2), ("other", 3)):
        answer = await exchanged(chain, with_key(key))
        assert answer.headers.get("X-RateLimit-Limit") == str(limit)


async def test_a_restriction_of_the_consumer_stands_in_the_place_of_the_routes() -> None:
    people = directory(known("jack", ("ip-restriction", {"whitelist": ["192.0.2.1"]})), known("jill"))
    chain = chain_for(people, KEY_AUTH, ("ip-restriction", {"whitelist": ["10.0.0.0/8"]}))
    assert await statuses(chain, "jack", "jill") == [200, 403]


async def test_what_would_have_run_earlier_runs_as_soon_as_the_consumer_is_known() -> None:
    people = directory(known("jack", ("fault-injection", {"abort": {"http_status": 418}})))
    assert await statuses(chain_for(people, KEY_AUTH), "jack") == [418]


async def test_a_consumers_plugins_see_its_answers() -> None:
    people = directory(known("jack", ("response-rewrite", {"headers": {"set": {"X-Plan": "gold"}}})), known("jill"))
    chain = chain_for(people, KEY_AUTH, ("response-rewrite", {"headers": {"set": {"X-Plan": "none"}}}))
    plans = [(await exchanged(chain, with_key(key))).headers.get("X-Plan") for key in ("jack", "jill", "nobody")]
    assert plans == ["gold", "none", "none"]


async def test_limits_can_count_by_consumer_and_by_group() -> None:
    people = directory(known("a", group="g"), known("b", group="g"), known("c"))
    by_name = chain_for(people, KEY_AUTH, ("limit-count", {"count": 1, "key": "consumer_name", **LIMIT}))
    assert await statuses(by_name, "a", "b", "a") == [200, 200, 429]
    by_group = chain_for(people, KEY_AUTH, ("limit-count", {"count": 1, "key": "consumer_group_id", **LIMIT}))
    assert await statuses(by_group, "a", "b", "c") == [200, 429, 200]


async def test_a_plugin_of_a_consumer_that_is_told_nonsense_costs_that_consumer(caplog) -> None:
    people = directory(known("jack", ("limit-count", {"count": 0})), known("jill"))
    chain = chain_for(people, KEY_AUTH)
    with caplog.at_level(logging.ERROR):
        first = await asked(chain, with_key("jack"))
        assert await statuses(chain, "jack", "jill") == [500, 200]
    assert first is not None
    assert first.reason.startswith("plugin limit-count, config.count: of consumer jack: must be ")
    assert len(caplog.records) == 1


async def test_a_change_of_consumer_or_group_holds_at_once() -> None:
    people = directory(known("jack", group="gold"))
    chain = chain_for(people, KEY_AUTH)
    assert await statuses(chain, "jack") == [200]
    gold = group("gold", ("fault-injection", {"abort": {"http_status": 418}}))
    people.replace_groups({gold.key: KnownGroup(gold)}, ())
    assert await statuses(chain, "jack") == [418]
    changed = known("jack")
    finish(people.replace({changed.key: people.read(changed, unsealed)}, ()))
    assert await statuses(chain, "jack") == [200]


async def test_all_that_recognise_consumers_have_to_be_satisfied() -> None:
    people = directory(consumer("jack", ("key-auth", {"key": "k"}), ("basic-auth", {"username": "j", "password": "p"})))
    chain = chain_for(people, KEY_AUTH, ("basic-auth", {}))
    assert await statuses(chain, "k") == [401]
    both = request("/", [("apikey", "k"), ("Authorization", "Basic ajpw")])
    assert (await exchanged(chain, both)).status == 200


class Counting(Plugin[PluginConfig]):
    """Counts requests under way, as limits do, before anybody is recognised."""

    name = "counting"
    order = 9000

    def on_request(self, request: Request) -> None:
        request.variables.setdefault("counted by", self)
        request.variables["under way"] = 1

    def on_finish(self, request: Request, status: int, seconds: float) -> None:
        if request.variables["counted by"] is self:
            request.variables["under way"] = 0


@pytest.mark.parametrize("key", ["jack", "jill", "nobody"])
async def test_a_plugin_that_was_asked_hears_of_the_end_though_a_consumers_stands_in_its_place(key) -> None:
    kinds = {"counting": Counting, "key-auth": REGISTRY.find("key-auth")}
    people = directory(known("jack", ("counting", {})), known("jill"))
    uses = [PluginUse(name="counting"), PluginUse(name="key-auth")]
    registry = PluginRegistry(found=(), built_in=kinds)
    chain = registry.chain(uses, PluginServices(consumers=people), unsealed, scope="a|r")
    assert chain is not None
    given = with_key(key)
    await asked(chain, given)
    assert given.variables["under way"] == 1
    chain.on_finish(given, 200, 0.1)
    assert given.variables["under way"] == 0


async def test_hooks_that_wait_are_waited_for_before_and_behind() -> None:
    class Slow(Plugin[PluginConfig]):
        async def on_request(self, request: Request) -> Response | None:
            seen.append(self.name)
            return None

    seen: list[str] = []
    early = type("Early", (Slow,), {"name": "early", "order": 9000})
    late = type("Late", (Slow,), {"name": "late", "order": 10})
    own = type("Own", (Slow,), {"name": "own", "order": 8000})
    kinds = {"key-auth": REGISTRY.find("key-auth"), **{kind.name: kind for kind in (early, late, own)}}
    people = directory(known("jack", ("own", {})))
    registry = PluginRegistry(found=(), built_in=kinds)
    uses = [PluginUse(name=name) for name in ("late", "early", "key-auth")]
    chain = registry.chain(uses, PluginServices(consumers=people), unsealed, scope="a|r")
    assert chain is not None
    assert await asked(chain, with_key("jack")) is None
    assert seen == ["early", "own", "late"]


async def test_a_plugin_of_all_routes_runs_first_and_nobodys_stands_in_its_place() -> None:
    people = directory(known("jack", ("limit-count", {"count": 5, **LIMIT})))
    everywhere = PluginUse(name="limit-count", config={"count": 1, "key": "http_apikey", **LIMIT}, is_global=True)
    uses = [PluginUse(name="key-auth"), PluginUse(name="ip-restriction", config={"blacklist": ["0.0.0.0/0"]})]
    restricted = PluginUse(name="ip-restriction", config={"blacklist": ["192.0.2.9"]}, is_global=True)
    services = PluginServices(consumers=people)
    chain = REGISTRY.chain([everywhere, PluginUse(name="key-auth")], services, unsealed, scope="a|r")
    assert chain is not None
    assert await statuses(chain, "nobody", "nobody", "jack", "jack") == [401, 429, 200, 429]
    chain = REGISTRY.chain([restricted, *uses], services, unsealed, scope="a|s")
    assert chain is not None
    assert chain.names == ("ip-restriction", "key-auth", "ip-restriction")


async def test_a_third_partys_plugin_can_recognise_consumers_by_its_own_means() -> None:
    class ByAddress(Plugin[PluginConfig]):
        name = "by-address"
        order = 2000
        finds_consumer = True

        def on_request(self, request: Request) -> None:
            consumer = self.services.consumers.named(f"at {request.client}")
            if consumer is not None:
                attach(request, consumer)

    people = directory(consumer("at 192.0.2.1", plugins=(("fault-injection", {"abort": {"http_status": 418}}),)))
    registry = PluginRegistry(found=(), built_in={"by-address": ByAddress, **BUILT_IN})
    use = PluginUse(name="by-address")
    chain = registry.chain([use], PluginServices(consumers=people), unsealed, scope="a|r")
    assert chain is not None
    assert (await exchanged(chain, request("/"))).status == 418
    assert (await exchanged(chain, request("/", client="192.0.2.2"))).status == 200
