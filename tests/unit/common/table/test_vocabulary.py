"""Small values: problems, statuses, resources, table entries."""

from typing import get_args

import pytest
from nacl.public import PrivateKey
from pydantic import ValidationError

from fakes.translator.sealing import seal
from headgate.common.problems import Problem, Severity
from headgate.common.resources import INGRESS, SERVICE, ObjectRef
from headgate.common.status import status_subject
from headgate.common.table import (
    ENTRIES,
    AllOf,
    AnyOf,
    Backend,
    BackendGroup,
    Balancing,
    Certificate,
    Challenge,
    Compare,
    Consumer,
    ConsumerGroup,
    Endpoint,
    EntryKind,
    EntryNoun,
    HashKey,
    Listener,
    MqttConnect,
    Not,
    Operator,
    PathMatch,
    PathType,
    Provenance,
    Route,
    StreamRoute,
    Subject,
    TableEntry,
    Upstream,
    VirtualHost,
    Weighted,
    WeightedUpstream,
    entry_key,
    entry_kind,
    kind_of,
)

FROM = Provenance(cluster="c", kind="Ingress", namespace="d", name="n", rule="spec.rules[0]")
A_PORT = {"key": "k", "port": 1883, "backends": (WeightedUpstream(upstream="u"),), "provenance": FROM}


def test_a_problem_reads_as_field_and_sentence() -> None:
    problem = Problem(reason="PortNotFound", field="spec.port", message="there is no such port")
    assert str(problem) == "spec.port: there is no such port"
    assert str(problem.model_copy(update={"field": ""})) == "there is no such port"
    assert problem.severity is Severity.ERROR


def test_kinds_and_objects_have_short_names() -> None:
    assert (str(INGRESS), str(SERVICE)) == ("ingresses.networking.k8s.io", "services")
    assert str(ObjectRef("c", "", "services", "d", "web")) == "c: services d/web"
    assert str(ObjectRef("c", "", "namespaces", "", "d")) == "c: namespaces d"


def test_a_status_has_the_subject_of_its_object() -> None:
    ref = ObjectRef("c.1", "networking.k8s.io", "ingresses", "d", "web")
    assert status_subject(ref, "default") == "headgate.status.c=2E1.default.networking=2Ek8s=2Eio.ingresses.d.web"


def test_provenance_reads_as_object_and_field() -> None:
    assert str(FROM) == "Ingress d/n spec.rules[0]"
    assert str(FROM.model_copy(update={"rule": ""})) == "Ingress d/n"


def test_every_kind_of_entry_knows_its_key() -> None:
    sealed = seal(b"k", [PrivateKey.generate().public_key])
    entries = (
        VirtualHost(host="a.com", routes=()),
        Upstream(key="c/d/web:80", provenance=FROM),
        Certificate(
            key="c/d/tls", server_names=("a.com",), chain_pem="", private_key=sealed, fingerprint="", provenance=FROM
        ),
        StreamRoute(
            key="c/d/dns", port=53, protocol="udp", backends=(WeightedUpstream(upstream="u"),), provenance=FROM
        ),
        Consumer(key="c/d/jack", name="d_jack", provenance=FROM),
        ConsumerGroup(key="c/d/gold", name="gold", provenance=FROM),
        Listener(key="c/d/web", port=8000, protocol="http", provenance=FROM),
        BackendGroup(key="c/d/all", weighted=Weighted(backends=(Backend(upstream="u"),)), provenance=FROM),
        Challenge(key="a.com/t", host="a.com", token="t", answer="t.k"),
    )
    assert tuple(entry_kind(entry) for entry in entries) == tuple(ENTRIES)
    assert [entry_key(entry) for entry in entries] == [
        "a.com",
        "c/d/web:80",
        "c/d/tls",
        "c/d/dns",
        "c/d/jack",
        "c/d/gold",
        "c/d/web",
        "c/d/all",
        "a.com/t",
    ]
    assert all(isinstance(entry, ENTRIES[entry_kind(entry)].model) for entry in entries)
    assert [kind_of(type(entry)) for entry in entries] == [entry_kind(entry) for entry in entries]


def test_types_name_the_kinds_that_have_rows() -> None:
    assert get_args(EntryKind) == tuple(ENTRIES)
    assert get_args(TableEntry) == tuple(row.model for row in ENTRIES.values())
    assert get_args(EntryNoun) == tuple(row.noun for row in ENTRIES.values())


@pytest.mark.parametrize(
    ("model", "fields"),
    [
        (Endpoint, {"address": "10.0.0.1", "port": 0}),
        (Endpoint, {"address": "10.0.0.1", "port": 80, "weight": -1}),
        (Backend, {"upstream": "u", "weight": 1_000_001}),
        (PathMatch, {"type": PathType.PREFIX, "value": "/", "ignore_case": True}),
        (Compare, {"subject": "header", "values": ("x",)}),
        (Compare, {"subject": "method", "name": "x", "values": ("GET",)}),
        (Compare, {"subject": "method"}),
        (Compare, {"subject": "header", "name": "x", "operator": "present", "values": ("x",)}),
        (Balancing, {"policy": "ring-hash"}),
        (Balancing, {"hash": (HashKey(source="client"),)}),
        (HashKey, {"source": "header"}),
        (StreamRoute, {"key": "k", "port": 0, "backends": (WeightedUpstream(upstream="u"),), "provenance": FROM}),
        (MqttConnect, {"protocol_level": 6}),
        (StreamRoute, {**A_PORT, "protocol": "udp", "mqtt": MqttConnect(protocol_level=4)}),
        (StreamRoute, {**A_PORT, "protocol": "tls", "mqtt": MqttConnect(protocol_level=4)}),
        (VirtualHost, {"host": "a.com", "routes": (), "colour": "red"}),
        (StreamRoute, {**A_PORT, "server_names": ("a.com",)}),
        (StreamRoute, {**A_PORT, "protocol": "tls", "port": 0, "address": "10.0.0.1"}),
        (StreamRoute, {**A_PORT, "priority": 1}),
        (Listener, {"key": "http", "protocol": "http", "port": 80, "provenance": FROM}),
        (Listener, {"key": "k", "protocol": "tcp", "port": 0, "provenance": FROM}),
        (Listener, {"key": "k", "protocol": "http", "port": 80, "certificates": ("c",), "provenance": FROM}),
        (Listener, {"key": "k", "protocol": "tcp", "port": 80, "https_redirect": {}, "provenance": FROM}),
        (PathMatch, {"type": PathType.PREFIX, "value": "/", "perl": True}),
        (PathMatch, {"type": PathType.PREFIX, "value": "/", "decoded": True}),
    ],
)
def test_entries_out_of_range_are_refused(model: type, fields: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        model(**fields)


def test_a_condition_survives_the_encoding_that_leaves_out_defaults() -> None:
    flag = Compare(subject=Subject.HEADER, name="x-beta", operator=Operator.PRESENT)
    when = AllOf(all_of=(Compare(subject=Subject.METHOD, values=("GET", "HEAD")), Not(negated=AnyOf(any_of=(flag,)))))
    route = Route(name="r", path=PathMatch(type=PathType.REGEX, value="/a.*"), when=when, provenance=FROM)
    assert Route.model_validate_json(route.model_dump_json(exclude_defaults=True)) == route
