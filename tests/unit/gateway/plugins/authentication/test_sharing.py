"""Which routes share the plugins that they are told the same of."""

import pytest

from headgate.common.sealing import ClusterValue
from headgate.common.table import PathMatch, PluginUse
from headgate.gateway.model.steps import finish
from headgate.gateway.plugins.interface import PluginServices, SharedState
from headgate.gateway.plugins.interface.errors import PluginRefused
from headgate.gateway.plugins.runtime.chain import PluginChain
from headgate.gateway.plugins.runtime.host import PluginHost
from unit.gateway.plugins.running import REGISTRY, asked, request, unsealed

CORS = PluginUse(name="cors", config={"max_age": 60})
REQUEST_ID = PluginUse(name="request-id")
LIMIT = PluginUse(name="limit-count", config={"count": 1, "time_window": 3600})
PATH = PathMatch(type="prefix", value="/")


@pytest.fixture
def host() -> PluginHost:
    return PluginHost(unsealed, PluginServices().send_to)


def made(host: PluginHost, *uses: PluginUse, scope: str = "a|r", owner: str = "c/team-a") -> PluginChain:
    plugins = finish(host.make_plugins(uses, scope, PATH, owner))
    assert plugins is not None
    return plugins.chain


def test_routes_with_equal_plugins_share_a_chain(host) -> None:
    again = (CORS.model_copy(), REQUEST_ID.model_copy())
    assert made(host, CORS, REQUEST_ID) is made(host, *again, scope="b|other")


@pytest.mark.parametrize(
    "other",
    [
        (CORS,),
        (REQUEST_ID, CORS),
        (CORS.model_copy(update={"config": {"max_age": 61}}), REQUEST_ID),
        (CORS.model_copy(update={"order": 1}), REQUEST_ID),
        (CORS.model_copy(update={"is_global": True}), REQUEST_ID),
        (CORS.model_copy(update={"config": {"max_age": 60, "_meta": {"priority": 1}}}), REQUEST_ID),
    ],
)
def test_routes_with_other_plugins_do_not(host, other) -> None:
    assert made(host, CORS, REQUEST_ID) is not made(host, *other)


async def test_limits_count_for_each_route(host) -> None:
    first, second = made(host, CORS, LIMIT), made(host, CORS, LIMIT, scope="b|r")
    assert await asked(first, request()) is None
    assert (await asked(first, request())).status == 503
    assert await asked(second, request(route="b|r")) is None


async def test_groups_of_limits_count_for_each_namespace(host) -> None:
    use = LIMIT.model_copy(update={"config": {**LIMIT.config, "group": "shop", "key_type": "constant", "key": "all"}})
    first = made(host, CORS, use)
    same = made(host, CORS, use, scope="b|r")
    other = made(host, CORS, use, scope="b|s", owner="c/team-b")
    elsewhere = made(host, CORS, use, scope="b|t", owner="d/team-a")
    assert await asked(first, request()) is None
    assert (await asked(same, request())).status == 503
    assert await asked(other, request()) is None
    assert await asked(elsewhere, request()) is None


def test_what_is_sealed_is_opened_for_each_route(host) -> None:
    use = PluginUse(name="csrf", secrets={"key": ClusterValue(boxes={"r": "hidden"})})
    assert made(host, use) is not made(host, use)


def test_fault_is_told_of_every_route(host) -> None:
    fault = PluginUse(name="cors", fault="the Secret is gone")
    for scope in ("a|r", "b|r"):
        with pytest.raises(PluginRefused, match="the Secret is gone"):
            finish(host.make_plugins((CORS, fault), scope, PATH, "c/team-a"))


def test_equal_configurations_are_read_once() -> None:
    services = PluginServices(shared=SharedState())
    first, second = (REGISTRY.make(LIMIT.model_copy(), services, unsealed) for _ in range(2))
    assert first is not second
    assert first.config is second.config
    other = LIMIT.model_copy(update={"config": {"count": 2, "time_window": 3600}})
    assert REGISTRY.make(other, services, unsealed).config.count == 2
