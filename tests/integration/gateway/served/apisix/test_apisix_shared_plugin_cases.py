"""Plugins that hold for many rules, and plugins that come, change and go: from manifests to the wire."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from fakes.gateway.served import HOST
from fakes.translator.apisix import resource, route, rule
from fakes.translator.applied import World, secret, world
from fakes.translator.deltas import ingress


def plugin(name: str, enable: bool = True, **config: Any) -> Any:
    return {"name": name, "enable": enable, "config": config}


def sets(enable: bool = True, **headers: str) -> Any:
    return plugin("response-rewrite", enable, headers={"set": headers})


def shared(*plugins: Any, namespace: str = "default") -> Any:
    return resource("ApisixPluginConfig", "shared", {"plugins": list(plugins)}, namespace=namespace)


def everywhere(name: str, *plugins: Any) -> Any:
    return resource("ApisixGlobalRule", name, {"plugins": list(plugins)})


def routed(**fields: Any) -> Any:
    backends = [{"serviceName": "one", "servicePort": 80}]
    return route(rule(hosts=[HOST], backends=backends, **fields))


@pytest.fixture
async def one() -> AsyncIterator[World]:
    """A proxy before a Service `one`."""
    async with world("one") as made:
        yield made


async def headers(made: World, *names: str) -> list[str]:
    got = await made.proxy.get()
    return [got[name] for name in names]


# Plugins of rules


@pytest.mark.parametrize(
    ("name", "config", "status"),
    [
        ("echo", {"body": "echoed"}, 200),
        ("redirect", {"uri": "/other", "ret_code": 308}, 308),
        ("ip-restriction", {"blacklist": ["127.0.0.1"]}, 403),
        ("uri-blocker", {"block_rules": ["^/"]}, 403),
        ("limit-count", {"count": 1, "time_window": 600, "rejected_code": 429}, 429),
        ("cors", {"allow_origins": "http://a.example"}, 200),
        ("request-id", {}, 200),
        ("fault-injection", {"abort": {"http_status": 404}}, 404),
    ],
)
async def test_a_plugin_is_added_disabled_and_deleted_with_its_route(
    one: World, name: str, config: Any, status: int
) -> None:
    async def seen() -> tuple[int, bytes, set[str]]:
        got = [await one.proxy.get(Origin="http://a.example") for _ in range(2)][-1]
        added = ("x-request-id", "access-control-allow-origin")
        return got.status, got.body, {each for each in added if got[each]}

    one.proxy.apply(routed())
    plain = await seen()
    assert plain == (200, b"one", set())
    one.proxy.apply(routed(plugins=[plugin(name, **config)]))
    changed = await seen()
    assert changed != plain
    assert changed[0] == status
    one.proxy.apply(routed(plugins=[plugin(name, enable=False, **config)]))
    assert await seen() == plain
    one.proxy.apply(routed(plugins=[plugin(name, **config)]))
    one.proxy.delete(routed())
    assert await one.proxy.status() == 404


async def test_words_of_a_secret_reach_the_plugin_of_a_rule_and_change_with_it(one: World) -> None:
    written = {**sets(X_Plain="plain"), "secretRef": "words"}
    one.proxy.apply(secret("words", **{"headers.set.X-Word": "first"}), routed(plugins=[written]))
    assert await headers(one, "x-plain", "x-word") == ["", "first"]
    one.proxy.apply(secret("words", **{"headers.set.X-Word": "second"}))
    assert await headers(one, "x-word") == ["second"]
    one.proxy.delete(secret("words"))
    assert await one.proxy.status() == 503


# ApisixPluginConfigs


async def test_a_shared_configuration_changes_for_all_that_name_it(one: World) -> None:
    named = {"k8s.apisix.apache.org/plugin-config-name": "shared"}
    one.proxy.apply(shared(sets(Word="first")), routed(plugin_config_name="shared"))
    one.proxy.apply(ingress("web", host="ingress.example", service="one", annotations=named))

    async def words() -> list[str]:
        return [(await one.proxy.get(host=host))["word"] for host in (HOST, "ingress.example")]

    assert await words() == ["first", "first"]
    one.proxy.apply(shared(sets(Word="second")))
    assert await words() == ["second", "second"]
    one.proxy.apply(shared(sets(enable=False, Word="second")))
    assert await words() == ["", ""]
    one.proxy.delete(shared())
    assert [await one.proxy.status(host=host) for host in (HOST, "ingress.example")] == [503, 503]


async def test_an_empty_shared_configuration_changes_nothing(one: World) -> None:
    one.proxy.apply(shared(), routed(plugin_config_name="shared"))
    assert await one.proxy.status() == 200


async def test_a_rules_own_plugin_goes_before_the_shared_one(one: World) -> None:
    theirs = [sets(Word="shared"), plugin("request-id")]
    one.proxy.apply(shared(*theirs), routed(plugin_config_name="shared", plugins=[sets(Word="own")]))
    word, identity = await headers(one, "word", "x-request-id")
    assert (word, bool(identity)) == ("own", True)


async def test_a_shared_configuration_of_another_namespace_has_its_own_secrets(one: World) -> None:
    words = secret("words", **{"headers.set.Word": "theirs"})
    theirs = {**words, "metadata": {**words["metadata"], "namespace": "other"}}
    config = shared({"name": "response-rewrite", "enable": True, "secretRef": "words"}, namespace="other")
    fields = {"plugin_config_name": "shared", "plugin_config_namespace": "other"}
    one.proxy.apply(secret("words", **{"headers.set.Word": "mine"}), theirs, config, routed(**fields))
    assert await headers(one, "word") == ["theirs"]


async def test_a_shared_configuration_holds_for_routes_to_upstreams(one: World) -> None:
    nodes = {"externalNodes": [{"name": "127.0.0.1", "type": "Domain", "port": one.port("one")}]}
    made = route(rule(hosts=[HOST], upstreams=[{"name": "ext"}], backends=[], plugin_config_name="shared"))
    one.proxy.apply(shared(plugin("echo", body="echoed")), resource("ApisixUpstream", "ext", nodes), made)
    assert (await one.proxy.get()).body == b"echoed"


# ApisixGlobalRules


async def test_a_global_rule_changes_and_goes_for_every_route(one: World) -> None:
    one.proxy.apply(routed(), everywhere("all", sets(Word="first")))
    assert await headers(one, "word") == ["first"]
    one.proxy.apply(everywhere("all", sets(Word="second")))
    assert await headers(one, "word") == ["second"]
    one.proxy.apply(everywhere("all", sets(enable=False, Word="second")))
    assert await headers(one, "word") == [""]
    one.proxy.apply(everywhere("all", sets(Word="third")))
    one.proxy.delete(everywhere("all"))
    assert await headers(one, "word") == [""]


async def test_global_rules_with_different_plugins_hold_together(one: World) -> None:
    rules = (
        everywhere("words", sets(Word="yes")),
        everywhere("origins", plugin("cors", allow_origins="http://a.example")),
    )
    one.proxy.apply(routed(), *rules)
    got = await one.proxy.get(Origin="http://a.example")
    assert (got["word"], got["access-control-allow-origin"]) == ("yes", "http://a.example")
    one.proxy.delete(rules[0])
    got = await one.proxy.get(Origin="http://a.example")
    assert (got["word"], got["access-control-allow-origin"]) == ("", "http://a.example")


async def test_a_global_rule_takes_words_from_a_secret(one: World) -> None:
    written = {"name": "response-rewrite", "enable": True, "secretRef": "words"}
    one.proxy.apply(routed(), secret("words", **{"headers.set.Word": "sealed"}), everywhere("all", written))
    assert await headers(one, "word") == ["sealed"]
