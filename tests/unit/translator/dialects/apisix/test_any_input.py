"""Whatever stands in a resource, it is translated or refused at a field, and never makes the translator fail."""

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fakes.translator.apisix import BACKEND, Translated, resource, route, rule
from fakes.translator.deltas import ingress
from headgate.common.resources import APISIX_KINDS
from headgate.translator.dialects.apisix.definitions import DEFINITIONS
from headgate.translator.dialects.apisix.models.legacy import LegacyRouteSpec
from headgate.translator.objects.definitions import make_schema

WORDS = st.sampled_from(
    ["", "a", "web", "/x*", "/a/*/b", "*.a.com", "A.com", "10.0.0.0/8", "5s", "keyAuth", "(", "é", "$host", "Ingress"]
)
SCALARS = st.one_of(st.none(), st.booleans(), st.integers(-2, 70000), st.floats(allow_nan=False, width=16), WORDS)
JSON = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(WORDS, inner, max_size=2), max_leaves=4
)


@st.composite
def shaped(draw: st.DrawFn, schema: Any) -> Any:
    """A value that a schema takes, now and then with something else in its place."""
    if draw(st.integers(0, 9)) == 9:
        return draw(JSON)
    if "enum" in schema:
        return draw(st.sampled_from(schema["enum"]))
    match schema.get("type"):
        case "object" if "properties" in schema:
            return _object(draw, schema)
        case "array":
            return [draw(shaped(schema["items"])) for _ in range(draw(st.integers(0, 2)))]
        case "integer":
            return draw(st.integers(schema.get("minimum", -5), schema.get("maximum", 70000)))
        case "boolean":
            return draw(st.booleans())
        case "object":
            return draw(st.dictionaries(WORDS, SCALARS, max_size=2))
    return draw(WORDS)


def _object(draw: st.DrawFn, schema: Any) -> Any:
    needed = schema.get("required", ())
    names = [name for name in schema["properties"] if name in needed or draw(st.integers(0, 3)) == 0]
    return {name: draw(shaped(schema["properties"][name])) for name in names}


WEB_SERVICE = {"group": "", "kind": "Service", "name": "web"}
WEB_INGRESS = {"group": "networking.k8s.io", "kind": "Ingress", "name": "web"}
SCHEMAS = {kind.kind: make_schema(definition.spec) for kind, definition in DEFINITIONS.items()}
LEGACY = make_schema(LegacyRouteSpec)


@pytest.mark.parametrize("kind", [kind.kind for kind in APISIX_KINDS])
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(data=st.data())
def test_whatever_stands_in_a_spec_is_read_or_refused(kind: str, data: st.DataObject) -> None:
    spec = data.draw(shaped(SCHEMAS[kind]))
    name = "web" if kind == "ApisixUpstream" else "any"
    backends = [BACKEND, {**BACKEND, "subset": "a"}, {**BACKEND, "resolveGranularity": "service"}]
    user = route(rule(backends=backends, upstreams=[{"name": "web"}], plugin_config_name="any"), name="user")
    if isinstance(spec, dict) and isinstance(spec.get("targetRefs"), list):
        spec["targetRefs"] = [*spec["targetRefs"], WEB_SERVICE, WEB_INGRESS]
    table = Translated(resource(kind, name, spec), user, ingress("web", host="b.com"))
    problems = [problem for found in table.offline.problems.values() for problem in found]
    assert [one for one in problems if one.reason == "InternalError"] == [], json.dumps(spec)
    assert all(one.field for one in table.problems(name)), json.dumps(spec)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_whatever_stands_in_a_route_of_v1_is_read_or_refused(data: st.DataObject) -> None:
    spec = data.draw(shaped(LEGACY))
    problems = Translated(resource("ApisixRoute", "any", spec, "v1")).problems("any")
    assert [one for one in problems if one.reason == "InternalError"] == [], json.dumps(spec)
