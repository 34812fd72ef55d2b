"""Filters of type ExtensionRef from manifests to the wire: Plugins of ours, and PluginConfigs of Apache APISIX."""

from typing import Any

import grpc
import pytest

from fakes.gateway.served import HOST
from fakes.peers.grpc_service import grpc_server, grpc_stub
from fakes.translator.apisix import resource as apisix
from fakes.translator.applied import World, secret, world
from fakes.translator.deltas import endpoint_slice, service
from fakes.translator.gateway_api import extension, gateway, gateway_class, grpc_route, plugins, prefix, route, to

ONCE = ("limit-count", {"count": 1, "time_window": 60, "rejected_code": 429})
GROUP = "apisix.apache.org"


def mark(name: str = "x-mark", value: str = "1") -> Any:
    return ("response-rewrite", {"headers": {"set": {name: value}}})


def served(made: World, *objects: Any, filters: Any = None, **fields: Any) -> Any:
    """Serve `/f` by a rule with filters, by default the Plugin `named`, and all else by one without."""
    rule = to("web", matches=[prefix("/f")], filters=filters or [extension("named")], **fields)
    written = route(rule, to("web"))
    made.proxy.apply(gateway_class(), gateway(), *objects, written)
    return written


async def test_the_plugins_of_an_object_run_for_the_rule_that_names_it_and_change_with_it() -> None:
    async with world("web") as made:
        served(made, plugins("named", ONCE, mark()))
        got = await made.proxy.get("/f")
        assert (got.status, got["x-mark"]) == (200, "1")
        assert await made.proxy.status("/f") == 429
        assert (await made.proxy.get("/"))["x-mark"] == ""
        made.proxy.apply(plugins("named", mark(value="2")))
        got = await made.proxy.get("/f")
        assert (got.status, got["x-mark"]) == (200, "2")


async def test_several_objects_are_followed_and_one_plugin_may_be_in_each() -> None:
    async with world("web") as made:
        filters = [extension("one"), extension("two")]
        served(made, plugins("one", mark("x-one")), plugins("two", mark("x-two")), filters=filters)
        got = await made.proxy.get("/f")
        assert (got["x-one"], got["x-two"]) == ("1", "1")


async def test_plugins_run_beside_the_other_filters_of_a_rule() -> None:
    async with world("web") as made:
        modifier = {
            "type": "ResponseHeaderModifier",
            "responseHeaderModifier": {"set": [{"name": "x-two", "value": "2"}]},
        }
        served(made, plugins("named", mark()), filters=[modifier, extension("named")])
        got = await made.proxy.get("/f")
        assert (got["x-mark"], got["x-two"]) == ("1", "2")


async def test_while_the_object_is_missing_the_rule_answers_500_and_no_other_does() -> None:
    async with world("web") as made:
        written = served(made)
        assert (await made.proxy.status("/f"), await made.proxy.status("/")) == (500, 200)
        assert made.proxy.errors(written) == ["FilterNotFound"]
        made.proxy.apply(plugins("named", mark()))
        assert await made.proxy.status("/f") == 200
        made.proxy.delete(plugins("named"))
        assert await made.proxy.status("/f") == 500


@pytest.mark.parametrize("wrong", [("limit-count", {"count": -1}), ("no-such-plugin", {}), ("traffic-split", {})])
async def test_an_object_with_a_mistake_has_the_rule_answer_500(wrong: Any) -> None:
    async with world("web") as made:
        written = served(made, plugins("named", mark(), wrong))
        assert await made.proxy.status("/f") == 500
        assert made.proxy.errors(written) == ["InvalidFilter"]
        assert "spec.plugins[1]" in made.proxy.messages(written)


@pytest.mark.parametrize(("kind", "group"), [("Plugin", "other.dev"), ("ApisixPluginConfig", GROUP), ("Secret", "")])
async def test_objects_of_other_kinds_are_no_filters(kind: str, group: str) -> None:
    async with world("web") as made:
        written = served(made, filters=[extension("named", kind, group)])
        assert await made.proxy.status("/f") == 500
        assert made.proxy.errors(written) == ["InvalidKind"]


async def test_an_object_of_another_namespace_is_not_meant() -> None:
    async with world("web") as made:
        served(made, plugins("named", mark(), namespace="other"))
        assert await made.proxy.status("/f") == 500


async def test_values_of_a_secret_are_merged_into_the_configuration() -> None:
    async with world("web") as made:
        named = plugins("named", ("basic-auth", {}))
        named["spec"]["plugins"][0]["secretRef"] = {"name": "users"}
        served(made, named)
        assert await made.proxy.status("/f") == 500
        made.proxy.apply(secret("users", htpasswd="joe:{PLAIN}word"))
        assert await made.proxy.status("/f") == 401
        assert await made.proxy.status("/f", Authorization="Basic am9lOndvcmQ=") == 200


async def test_a_plugin_config_of_apisix_runs_for_the_rule_that_names_it() -> None:
    config = apisix("PluginConfig", "named", {"plugins": [{"name": ONCE[0], "config": ONCE[1]}]}, "v1alpha1")
    async with world("web") as made:
        written = served(made, filters=[extension("named", "PluginConfig", GROUP)])
        assert made.proxy.errors(written) == ["FilterNotFound"]
        made.proxy.apply(apisix("PluginConfig", "named", {"plugins": [{"name": "limit-cuont"}]}, "v1alpha1"))
        assert made.proxy.errors(written) == ["InvalidFilter"]
        made.proxy.apply(config)
        assert [await made.proxy.status("/f") for _ in range(2)] == [200, 429]


async def test_plugins_of_a_backend_run_for_its_share_alone() -> None:
    async with world("one", "two") as made:
        marked = {"name": "one", "port": 80, "filters": [extension("named")]}
        made.proxy.apply(
            gateway_class(),
            gateway(),
            plugins("named", mark()),
            route({"backendRefs": [marked, {"name": "two", "port": 80}]}),
        )
        got = [await made.proxy.get() for _ in range(4)]
        assert sorted((each.body, each["x-mark"]) for each in got) == [(b"one", "1")] * 2 + [(b"two", "")] * 2


async def test_a_backend_whose_plugins_cannot_be_had_answers_500_with_its_share() -> None:
    async with world("one", "two") as made:
        backends = [{"name": name, "port": 80} for name in ("one", "two")]
        backends[0]["filters"] = [extension("named")]
        written = route({"backendRefs": backends})
        made.proxy.apply(gateway_class(), gateway(), written)
        assert sorted([await made.proxy.status() for _ in range(4)]) == [200, 200, 500, 500]
        made.proxy.apply(plugins("named", ("key-auth", {})))
        assert made.proxy.errors(written) == ["InvalidFilter"]
        assert "filters of the rule" in made.proxy.messages(written)
        assert sorted([await made.proxy.status() for _ in range(4)]) == [200, 200, 500, 500]


async def test_plugins_run_for_calls_of_a_grpc_route() -> None:
    async with grpc_server(None) as (echo, number), world() as made:
        made.proxy.apply(service("web"), endpoint_slice("web", "127.0.0.1", port=number), gateway_class(), gateway())
        made.proxy.apply(grpc_route(to("web", filters=[extension("named")])))
        async with grpc_stub(made.proxy.proxy.port, authority=HOST) as stub:
            with pytest.raises(grpc.aio.AioRpcError):
                await stub.unary(b"abc")
            assert not echo.metadata
            made.proxy.apply(plugins("named", ("proxy-rewrite", {"headers": {"set": {"x-mark": "1"}}})))
            assert await stub.unary(b"abc") == b"cba"
            assert dict(echo.metadata[0])["x-mark"] == "1"
