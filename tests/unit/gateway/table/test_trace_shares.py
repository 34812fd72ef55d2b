"""Which share of a route's requests begins a trace."""

import json
from typing import Any

import pytest

from fakes.gateway.table import route
from headgate.common.table import PluginUse, Route
from headgate.gateway.plugins.interface import PluginServices
from headgate.gateway.proxy.policies import RoutePolicies
from headgate.gateway.table.compile import decode_route
from headgate.gateway.table.policies import compile_policies, guard_policies
from headgate.gateway.tls.policy import ClientGuard
from unit.gateway.plugins.running import REGISTRY, unsealed


def read(config: dict[str, Any], fields: dict[str, Any]) -> Route:
    """A route with the plugin, as tables of schema 6 have it."""
    use = PluginUse(name="opentelemetry", config=config)
    plain = route("/").model_copy(update={"plugins": (use,)}).model_dump(mode="json", exclude={"tracing"})
    return decode_route(json.dumps(plain | fields).encode())


def compiled(config: dict[str, Any]) -> RoutePolicies:
    policies = compile_policies(read(config, {}))
    assert policies is not None
    return policies


def share_of(config: dict[str, Any], share: float | None = None) -> float | None:
    use = PluginUse(name="opentelemetry", config=config)
    assert REGISTRY.chain([use], PluginServices(), unsealed) is None
    policies = compile_policies(read(config, {"trace_share": share}))
    return None if policies is None else policies.trace_share


@pytest.mark.parametrize(
    ("sampler", "share"),
    [
        ({}, 0.0),
        ({"name": "always_on"}, 1.0),
        ({"name": "trace_id_ratio", "options": {"fraction": 0.25}}, 0.25),
        ({"name": "parent_base"}, 0.0),
        ({"name": "parent_base", "options": {"root": {"name": "always_on"}}}, 1.0),
        ({"name": "parent_base", "options": {"root": {"name": "trace_id_ratio", "options": {"fraction": 0.5}}}}, 0.5),
    ],
)
def test_sampler_of_the_plugin_says_the_share(sampler: dict[str, Any], share: float) -> None:
    assert share_of({"sampler": sampler}, 0.75) == share


@pytest.mark.parametrize("name", ["always_on", "always_off", "trace_id_ratio", "parent_base"])
def test_only_one_sampler_heeds_trace_context(name: str) -> None:
    policies = compiled({"sampler": {"name": name}})
    assert policies.trace_heeds_parent is (name == "parent_base")


def test_plugin_says_what_spans_have_besides_also_for_routes_of_other_hosts() -> None:
    names = {"additional_attributes": ["host"], "additional_header_prefix_attributes": ["X-My-*"]}
    policies = compiled({"sampler": {"name": "always_on"}, **names})
    for each in (policies, guard_policies(policies, ClientGuard(None))):
        assert (each.trace_attributes, each.trace_headers, each.trace_heeds_parent) == (("host",), ("x-my-*",), False)


def test_plugin_that_is_disabled_leaves_the_routes_own_share() -> None:
    disabled = {"_meta": {"disable": True}}
    assert share_of(disabled, 0.75) == 0.75
    assert share_of(disabled) is None
