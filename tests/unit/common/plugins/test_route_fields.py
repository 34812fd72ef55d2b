"""Plugins that routes have fields for."""

from typing import Any

import pytest

from fakes.gateway.table import route
from headgate.common.plugins.route_fields import plugins_as_fields
from headgate.common.sealing import ClusterValue
from headgate.common.table import Mirror, PluginUse, Route, Tracing

CORS = PluginUse(name="cors")


def mirror_use(**more: Any) -> PluginUse:
    return PluginUse.model_validate({"name": "proxy-mirror", "config": {"upstream": "shadow"}} | more)


def with_plugins(*uses: PluginUse, **fields: Any) -> Route:
    return plugins_as_fields(route("/").model_copy(update={"plugins": uses, **fields}))


def test_plain_mirror_becomes_a_field_behind_those_that_there_are() -> None:
    other = Mirror(address="http://other:80")
    found = with_plugins(CORS, mirror_use(), mirrors=(other,))
    assert (found.plugins, found.mirrors) == ((CORS,), (other, Mirror(upstream="shadow")))


def test_all_that_the_plugin_says_of_copies_is_kept() -> None:
    config = {"host": "https://s", "path": "/p", "path_concat_mode": "prefix", "sample_ratio": 0.5, "host_header": "h"}
    more = {"mirror_body": False, "max_body": 1, "max_in_flight": 2, "timeout": 3, "ssl_verify": False}
    (mirror,) = with_plugins(mirror_use(config=config | more)).mirrors
    assert mirror == Mirror(
        address="https://s",
        path="/p",
        path_mode="prefix",
        share=0.5,
        host="h",
        with_body=False,
        max_body=1,
        max_in_flight=2,
        timeout_s=3,
        verify_tls=False,
    )


@pytest.mark.parametrize(
    "more",
    [
        {"is_global": True},
        {"order": 5},
        {"fault": "it is bad"},
        {"config": {"upstream": "shadow", "_meta": {"filter": []}}},
        {"config": {}},
        {"secrets": {"host_header": ClusterValue(boxes={})}},
    ],
)
def test_mirror_whose_place_or_request_counts_stays_a_plugin(more: dict[str, Any]) -> None:
    use = mirror_use(**more)
    found = with_plugins(use)
    assert (found.plugins, found.mirrors) == ((use,), ())


def test_first_that_says_what_is_traced_counts() -> None:
    everywhere = PluginUse(name="opentelemetry", config={"sampler": {"name": "always_on"}}, is_global=True)
    found = with_plugins(everywhere, PluginUse(name="opentelemetry"), tracing=Tracing(share=0.5))
    assert (found.plugins, found.tracing) == ((), Tracing(share=1.0, heeds_parent=False))


def test_what_is_traced_by_a_plugin_that_cannot_be_read_is_left_to_gateways_to_refuse() -> None:
    bad = PluginUse(name="opentelemetry", config={"sampler": 1})
    assert with_plugins(bad).plugins == (bad,)


def test_route_without_such_plugins_is_the_same() -> None:
    plain = route("/").model_copy(update={"plugins": (CORS,)})
    assert plugins_as_fields(plain) is plain


@pytest.mark.parametrize(("written", "share"), [(0.25, 0.25), (1, 1.0), (None, None)])
def test_share_of_schema_6_is_read(written: float | None, share: float | None) -> None:
    told = route("/").model_dump(mode="json", exclude={"tracing"}) | {"trace_share": written}
    assert Route.model_validate(told).tracing == Tracing(share=share)


@pytest.mark.parametrize("fields", [{}, {"upstream": "a", "address": "http://b"}, {"upstream": "a", "group": "b"}])
def test_mirror_has_one_target(fields: dict[str, str]) -> None:
    with pytest.raises(ValueError, match="one of upstream, group and address"):
        Mirror(**fields)
