"""Rows, models and definitions of the kinds: both groups, and what Traefik's own definitions take."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

from headgate.common.resources import ALL_KINDS, ResourceKind, StatusShape
from headgate.common.resources.references import find_referents
from headgate.common.resources.traefik import (
    INGRESS_ROUTE,
    MIDDLEWARE,
    OLDER_TRAEFIK_KINDS,
    SERVERS_TRANSPORT,
    TRAEFIK_KINDS,
)
from headgate.translator.dialects.traefik.definitions import DEFINITIONS
from headgate.translator.dialects.traefik.fields import (
    MIDDLEWARE_FIELDS,
    MIDDLEWARE_TCP_FIELDS,
    ROUTE_FIELDS,
    SERVERS_TRANSPORT_FIELDS,
    SERVERS_TRANSPORT_TCP_FIELDS,
    TCP_ROUTE_FIELDS,
    TLS_OPTION_FIELDS,
    TLS_STORE_FIELDS,
    TRAEFIK_FIELDS,
    TRAEFIK_SERVICE_FIELDS,
    UDP_ROUTE_FIELDS,
)
from headgate.translator.dialects.traefik.models.fields import go_duration
from headgate.translator.manifests.verdicts import FieldVerdict, field_table
from headgate.translator.objects.definitions import make_definition

DOCS = Path(__file__).parents[5] / "docs"
MADE = {kind: make_definition(kind, definition) for kind, definition in DEFINITIONS.items()}
BY_NAME = {kind.kind: kind for kind in TRAEFIK_KINDS}


def spec_schema(kind: ResourceKind) -> dict[str, Any]:
    (version,) = MADE[kind]["spec"]["versions"]
    found: dict[str, Any] = version["schema"]["openAPIV3Schema"]["properties"]["spec"]
    return found


def parts(schema: Any) -> Iterator[Any]:
    yield schema
    for one in schema.get("properties", {}).values():
        yield from parts(one)
    if "items" in schema:
        yield from parts(schema["items"])


def test_every_kind_of_the_newer_group_has_a_definition() -> None:
    assert set(DEFINITIONS) == set(TRAEFIK_KINDS)
    assert len(TRAEFIK_KINDS) == len(OLDER_TRAEFIK_KINDS) == 10


def test_objects_of_both_groups_are_read() -> None:
    for newer, older in zip(TRAEFIK_KINDS, OLDER_TRAEFIK_KINDS, strict=True):
        assert (newer.group, older.group) == ("traefik.io", "traefik.containo.us")
        assert {(newer,), (older,)} <= set(ALL_KINDS.choices)
        assert older.references == newer.references


@pytest.mark.parametrize("kind", MADE, ids=str)
def test_objects_have_conditions_in_a_status_subresource(kind: ResourceKind) -> None:
    (version,) = MADE[kind]["spec"]["versions"]
    assert kind.status is StatusShape.CONDITIONS
    assert version["subresources"] == {"status": {}}


@pytest.mark.parametrize("kind", TRAEFIK_KINDS, ids=str)
def test_every_field_is_described_and_typed(kind: ResourceKind) -> None:
    for part in parts(spec_schema(kind)):
        assert part.keys() & {"type", "x-kubernetes-int-or-string", "x-kubernetes-preserve-unknown-fields"}, part
        assert not [name for name, one in part.get("properties", {}).items() if not one.get("description")]


@pytest.mark.parametrize(
    ("kind", "spec"),
    [
        ("IngressRoute", {"routes": [{"match": "Path(`/`)", "services": [{"name": "web", "port": "http"}]}]}),
        ("IngressRoute", {"routes": [{"match": "Path(`/`)", "kind": "Rule", "priority": -3}], "tls": {}}),
        ("IngressRouteTCP", {"routes": [{"match": "HostSNI(`*`)", "services": [{"name": "db", "port": 5432}]}]}),
        ("IngressRouteUDP", {"routes": [{"services": [{"name": "dns", "port": "dns", "weight": 0}]}]}),
        ("Middleware", {"rateLimit": {"average": 10, "period": 60, "burst": 5}}),
        ("Middleware", {"retry": {"attempts": 3, "initialInterval": "100ms"}}),
        ("Middleware", {"plugin": {"own": {"deep": [{"x": 1}]}}}),
        ("MiddlewareTCP", {"ipAllowList": {"sourceRange": ["10.0.0.0/8"]}}),
        ("TraefikService", {"mirroring": {"name": "web", "port": 80, "mirrors": [{"name": "m", "percent": 10}]}}),
        ("TLSOption", {"clientAuth": {"clientAuthType": "RequireAnyClientCert"}, "sniStrict": True}),
        ("TLSStore", {"defaultCertificate": {"secretName": "own"}}),
        ("ServersTransport", {"maxIdleConnsPerHost": -1, "forwardingTimeouts": {"dialTimeout": "1m30s"}}),
        ("ServersTransportTCP", {"dialTimeout": 30, "tls": {"rootCAs": [{"configMap": "ca"}]}}),
    ],
)
def test_definition_and_model_take_what_users_of_traefik_write(kind: str, spec: dict[str, Any]) -> None:
    row = BY_NAME[kind]
    assert jsonschema_rs.is_valid(spec_schema(row), spec)
    found = DEFINITIONS[row].spec.model_validate(spec)
    assert found.model_extra == {}
    assert set(found.model_dump(by_alias=True, exclude_unset=True)) == set(spec)


@pytest.mark.parametrize(
    ("kind", "spec"),
    [
        ("IngressRoute", {}),
        ("IngressRoute", {"routes": [{"services": []}]}),
        ("IngressRoute", {"routes": [{"match": "Path(`/`)", "services": [{"port": 80}]}]}),
        ("IngressRouteTCP", {"routes": [{"match": "HostSNI(`*`)", "services": [{"name": "db"}]}]}),
        ("Middleware", {"inFlightReq": {"amount": -1}}),
        ("TLSOption", {"clientAuth": {"clientAuthType": "Maybe"}}),
        ("TLSStore", {"certificates": [{}]}),
    ],
)
def test_definition_and_model_refuse_what_traefik_refuses(kind: str, spec: dict[str, Any]) -> None:
    row = BY_NAME[kind]
    assert not jsonschema_rs.is_valid(spec_schema(row), spec)
    with pytest.raises(ValueError, match="validation error"):
        DEFINITIONS[row].spec.model_validate(spec)


@pytest.mark.parametrize(
    ("written", "seconds"),
    [(5, 5.0), ("5", 5.0), ("1m30s", 90.0), ("100ms", 0.1), ("1.5h", 5400.0), ("-1ns", -1e-9), ("0s", 0.0)],
)
def test_durations_are_read_as_go_writes_them(written: Any, seconds: float) -> None:
    assert go_duration(written) == pytest.approx(seconds)


@pytest.mark.parametrize("written", ["", "-", "5 s", "1d", "s", "1m30", True, 1.5, None, "9" * 13, "3000000h"])
def test_what_is_no_duration_is_refused(written: Any) -> None:
    with pytest.raises(ValueError, match="must be a time"):
        go_duration(written)


@pytest.mark.parametrize(
    ("kind", "spec", "named"),
    [
        (INGRESS_ROUTE, {"tls": {"secretName": "cert"}}, {("secrets", "cert")}),
        (MIDDLEWARE, {"basicAuth": {"secret": "users"}}, {("secrets", "users")}),
        (
            SERVERS_TRANSPORT,
            {"rootCAs": [{"secret": "a"}, {"configMap": "b"}], "certificatesSecrets": ["c"]},
            {("secrets", "a"), ("configmaps", "b"), ("secrets", "c")},
        ),
    ],
    ids=["route", "middleware", "transport"],
)
def test_secrets_and_config_maps_that_an_object_names_are_found(
    kind: ResourceKind, spec: dict[str, Any], named: set[tuple[str, str]]
) -> None:
    found = find_referents(kind.references, {"metadata": {"name": "a", "namespace": "shop"}, "spec": spec})
    assert {(one.resource, one.name) for one in found} == named
    assert {one.namespace for one in found} == {"shop"}


@pytest.mark.parametrize("kind", TRAEFIK_KINDS, ids=str)
def test_every_row_of_the_table_of_fields_is_about_a_field_that_there_is(kind: ResourceKind) -> None:
    for row in TRAEFIK_FIELDS[kind.resource]:
        for field in row.fields:
            place = spec_schema(kind)
            for step in field.split("."):
                assert step == "*" or step.removesuffix("[]") in place["properties"], field
                place = place if step == "*" else place["properties"][step.removesuffix("[]")]
                place = place["items"] if step.endswith("[]") else place


@pytest.mark.parametrize(
    "rows",
    [
        ROUTE_FIELDS,
        MIDDLEWARE_FIELDS,
        MIDDLEWARE_TCP_FIELDS,
        TCP_ROUTE_FIELDS,
        UDP_ROUTE_FIELDS,
        TRAEFIK_SERVICE_FIELDS,
        SERVERS_TRANSPORT_FIELDS,
        SERVERS_TRANSPORT_TCP_FIELDS,
        TLS_OPTION_FIELDS,
        TLS_STORE_FIELDS,
    ],
)
def test_the_page_of_traefik_has_the_tables_of_fields(rows: tuple[FieldVerdict, ...]) -> None:
    assert field_table(rows) in (DOCS / "traefik.md").read_text()
