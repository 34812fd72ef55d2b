"""Parameters of Gateways and GatewayClasses from manifests to the wire: GatewayProxies, and ConfigMaps."""

from typing import Any

import pytest

from fakes.translator.apisix import resource as apisix
from fakes.translator.applied import secret, world
from fakes.translator.deltas import ingress, ingress_class
from fakes.translator.gateway_api import extension, gateway, gateway_class, plugins, prefix, route, to

GROUP = "apisix.apache.org"
PROXY = {"group": GROUP, "kind": "GatewayProxy", "name": "proxy"}
MAP = {"group": "", "kind": "ConfigMap", "name": "proxy"}


def mark(name: str = "x-mark", value: str = "1") -> Any:
    return ("response-rewrite", {"headers": {"set": {name: value}}})


def proxy(*uses: Any, **spec: Any) -> Any:
    written = [{"name": name, "enabled": True, "config": config} for name, config in uses]
    return apisix("GatewayProxy", "proxy", {"plugins": written, **spec}, "v1alpha1")


def config_map(**data: str) -> Any:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "proxy", "namespace": "default", "uid": "uid-map"},
        "data": data,
    }


def with_parameters(named: Any, name: str = "gw") -> Any:
    return gateway(name=name, spec={"infrastructure": {"parametersRef": named}})


async def test_plugins_of_a_gateway_proxy_run_for_the_routes_of_its_gateway_alone() -> None:
    async with world("web") as made:
        other = route(to("web", matches=[prefix("/other")]), name="other", parents=[{"name": "other"}])
        both = route(to("web", matches=[prefix("/both")]), name="both", parents=[{"name": "gw"}, {"name": "other"}])
        made.proxy.apply(gateway_class(), with_parameters(PROXY), gateway(name="other"), proxy(mark()))
        made.proxy.apply(route(to("web")), other, both, ingress("ours", path="/ingress"))
        assert (await made.proxy.get("/"))["x-mark"] == "1"
        assert (await made.proxy.get("/both"))["x-mark"] == "1"
        for path in ("/other", "/ingress"):
            got = await made.proxy.get(path)
            assert (got.status, got["x-mark"]) == (200, "")
        made.proxy.apply(proxy(mark(value="2")))
        assert (await made.proxy.get("/"))["x-mark"] == "2"


@pytest.mark.parametrize(
    ("named", "objects"),
    [(PROXY, (proxy(mark()),)), (MAP, (config_map(plugins="one, two"), plugins("one", mark()), plugins("two")))],
    ids=["proxy", "map"],
)
async def test_a_gateway_is_not_served_while_its_parameters_are_missing(named: Any, objects: Any) -> None:
    objects[-1]["spec"]["plugins"] = objects[-1]["spec"]["plugins"] or [{"name": "request-id"}]
    async with world("web") as made:
        written = with_parameters(named)
        made.proxy.apply(gateway_class(), written, route(to("web")))
        assert await made.proxy.status() == 404
        assert made.proxy.errors(written) == ["InvalidParameters"]
        made.proxy.apply(*objects)
        got = await made.proxy.get()
        assert (got.status, got["x-mark"]) == (200, "1")
        made.proxy.delete(objects[-1])
        assert await made.proxy.status() == 404


async def test_parameters_of_the_class_hold_for_all_gateways_and_those_of_a_gateway_go_before_them() -> None:
    async with world("web") as made:
        above = gateway_class(parametersRef={**MAP, "namespace": "default"})
        made.proxy.apply(above, config_map(plugins="named"), plugins("named", mark(), ("request-id", {})))
        made.proxy.apply(gateway(), route(to("web")))
        got = await made.proxy.get()
        assert (got["x-mark"], bool(got["x-request-id"])) == ("1", True)
        made.proxy.apply(with_parameters(PROXY), proxy(mark(value="2")))
        got = await made.proxy.get()
        assert (got["x-mark"], bool(got["x-request-id"])) == ("2", True)


async def test_a_gateway_whose_class_has_parameters_that_are_missing_is_not_served() -> None:
    async with world("web") as made:
        written = gateway()
        made.proxy.apply(gateway_class(parametersRef={**MAP, "namespace": "default"}), written, route(to("web")))
        assert await made.proxy.status() == 404
        assert made.proxy.errors(written) == ["InvalidParameters"]
        assert "parametersRef of GatewayClass edge: ConfigMap default/proxy" in made.proxy.messages(written)


async def test_plugins_of_a_gateway_proxy_of_an_ingress_class_too_run_once_for_all_routes() -> None:
    parameters = {"apiGroup": GROUP, "kind": "GatewayProxy", "name": "proxy", "namespace": "default"}
    ingresses = ingress_class("headgate")
    ingresses["spec"]["parameters"] = parameters
    once = proxy(("limit-count", {"count": 2, "time_window": 60, "rejected_code": 429}))
    async with world("web") as made:
        made.proxy.apply(ingresses, gateway_class(), with_parameters(PROXY), once, route(to("web")))
        assert [await made.proxy.status() for _ in range(3)] == [200, 200, 429]


async def test_a_plugin_that_keeps_requests_out_and_cannot_be_followed_refuses_them_all() -> None:
    async with world("web") as made:
        made.proxy.apply(gateway_class(), with_parameters(PROXY), proxy(("key-auth", {"header": 1})), route(to("web")))
        assert await made.proxy.status() == 500


async def test_metadata_of_the_gateway_proxy_fill_in_plugins_that_routes_name() -> None:
    config = {"plugins": [{"name": "limit-count", "config": {"count": 5, "time_window": 60}}]}
    metadata = {"limit-count": {"limit_header": "X-Most"}}
    async with world("web") as made:
        made.proxy.apply(gateway_class(), with_parameters(PROXY), proxy(pluginMetadata=metadata))
        made.proxy.apply(apisix("PluginConfig", "named", config, "v1alpha1"))
        made.proxy.apply(route(to("web", filters=[extension("named", "PluginConfig", GROUP)])))
        assert (await made.proxy.get())["X-Most"] == "5"


async def test_consumers_of_a_gateway_are_recognised_by_its_routes() -> None:
    spec = {
        "gatewayRef": {"name": "gw"},
        "credentials": [{"type": "key-auth", "name": "key", "secretRef": {"name": "words"}}],
    }
    async with world("web") as made:
        made.proxy.apply(gateway_class(), gateway(), plugins("named", ("key-auth", {})), secret("words", key="word"))
        made.proxy.apply(route(to("web", filters=[extension("named")])), apisix("Consumer", "jack", spec, "v1alpha1"))
        assert await made.proxy.status() == 401
        assert await made.proxy.status(Apikey="word") == 200
