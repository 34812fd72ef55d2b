"""Client certificates, certificates and names of streams belong to the namespace that owns the host."""

from typing import Any

import pytest

from fakes.translator.apisix import resource, route, rule
from fakes.translator.deltas import applied, deleted, ingress, ref_of, service, tls_secret
from fakes.translator.shared_host import NEW, NEWEST, OLD, SHARED, VICTIM, Table, apisix_guest, guest
from headgate.common.problems import Severity
from headgate.common.table import Certificate, StreamRoute
from headgate.translator.assembly.boundaries import HostSharing
from headgate.translator.composition import DIALECTS
from headgate.translator.translation import Translation


def apisix_tls(name: str = "tls", host: str = "open.test", **fields: Any) -> Any:
    metadata = {"namespace": "team-b", "creationTimestamp": NEW, **fields}
    client = {"client": {"caSecret": {"name": "nowhere", "namespace": "team-b"}}}
    spec = {"hosts": [host], "secret": {"name": "cert", "namespace": metadata["namespace"]}, **client}
    return resource("ApisixTls", name, spec, **metadata)


# TLS


def test_client_certificates_that_a_guest_asks_for_are_not_asked_for() -> None:
    made = apisix_tls()
    table = Table(VICTIM, made, tls_secret("cert", "open.test", namespace="team-b"))
    host = table.host()
    assert host.tls is None
    assert table.taker("/") == "team-a/shop"
    assert any(
        problem.field == "spec.client" and "TLS of it is for its owner" in problem.message
        for problem in table.lost(made)
    )


def test_a_guests_own_routes_are_closed_while_its_client_certificates_are_not_asked_for() -> None:
    table = Table(VICTIM, apisix_tls(), apisix_guest("/api*"))
    host = table.host()
    assert {one.provenance.namespace: len(one.backends) for one in host.routes} == {"team-a": 1, "team-b": 0}


def test_client_certificates_by_annotation_are_the_owners_too() -> None:
    made = guest("/api", {"client-auth-secret": "cas"}, path_type="Prefix")
    table = Table(VICTIM, made, tls_secret("cas", "x", namespace="team-b", authorities_pem="-"))
    host = table.host()
    assert host.tls is None
    assert [len(one.backends) for one in host.routes] == [0, 1]


@pytest.mark.parametrize("sharing", ["paths", "any"])
def test_client_certificates_of_those_who_may_are_asked_for(sharing: HostSharing) -> None:
    table = Table(SHARED if sharing == "paths" else VICTIM, apisix_tls(), sharing=sharing)
    host = table.host()
    assert host.tls is not None


def test_a_wildcard_of_another_namespace_closes_no_older_host() -> None:
    owning = route(rule("r", hosts=["a.open.test"]), name="shop", namespace="team-a", creationTimestamp=OLD)
    made = apisix_tls(host="*.open.test")
    table = Table(owning, made, tls_secret("cert", "*.open.test", namespace="team-b"))
    assert table.host("a.open.test").tls is None
    (problem,) = table.lost(made)
    assert problem.severity is Severity.WARNING
    assert problem.message.startswith("no client certificate is asked for a.open.test: ")


def test_a_wildcard_that_is_older_than_a_host_holds_for_it() -> None:
    owning = route(rule("r", hosts=["a.open.test"]), name="shop", namespace="team-a", creationTimestamp=NEW)
    host = Table(owning, apisix_tls(host="*.open.test", creationTimestamp=OLD)).host("a.open.test")
    assert host.tls is not None


def test_a_certificate_of_a_guest_does_not_lift_what_a_wildcard_asks() -> None:
    owning = route(rule("r", hosts=["a.open.test"]), name="shop", namespace="team-a", creationTimestamp=NEW)
    platform = apisix_tls(host="*.open.test", creationTimestamp=OLD, namespace="team-c")
    lifting = apisix_tls(name="lift", host="a.open.test", creationTimestamp=NEWEST)
    del lifting["spec"]["client"]
    secret = tls_secret("cert", "a.open.test", namespace="team-b")
    host = Table(owning, platform, lifting, secret).host("a.open.test")
    assert host.tls is not None


def presented(table: Table) -> dict[str, tuple[str, ...]]:
    return {one.key: one.server_names for one in table.offline.entries if isinstance(one, Certificate)}


def with_tls(manifest: Any, host: str = "open.test") -> Any:
    return {**manifest, "spec": {**manifest["spec"], "tls": [{"hosts": [host], "secretName": "cert"}]}}


CERTS = tuple(tls_secret("cert", "open.test", namespace=namespace) for namespace in ("team-a", "team-b"))


def test_a_guest_presents_no_certificate_for_a_host_without_one() -> None:
    made = with_tls(guest("/api", path_type="Prefix"))
    table = Table(VICTIM, made, *CERTS)
    assert presented(table) == {}
    (problem,) = table.lost(made)
    assert (problem.field, problem.severity) == ("spec.tls[0].hosts[0]", Severity.ERROR)
    assert ref_of(made) in table.offline.accepted


def test_the_owners_certificate_goes_before_an_older_one() -> None:
    mine = with_tls(ingress("later", host="open.test", path="/x", namespace="team-a", created=NEWEST))
    made = with_tls(guest("/api", path_type="Prefix"))
    table = Table(VICTIM, mine, made, *CERTS)
    assert presented(table) == {"a/team-a/cert": ("open.test",)}
    assert [problem.severity for problem in table.lost(made)] == [Severity.WARNING]


def test_a_certificate_that_was_there_before_the_owner_is_presented() -> None:
    central = apisix_tls(creationTimestamp=OLD)
    del central["spec"]["client"]
    later = ingress("shop", host="open.test", namespace="team-a", created=NEW)
    assert presented(Table(central, later, *CERTS)) == {"a/team-b/cert": ("open.test",)}


# Streams on the HTTPS port


def passthrough(names: str, created: str = NEW, namespace: str = "team-b") -> Any:
    made = service("db", namespace=namespace)
    made["metadata"]["creationTimestamp"] = created
    annotations = {"stream-protocol": "tls-passthrough", "stream-server-names": names}
    made["metadata"]["annotations"] = {f"headgate.dev/{name}": value for name, value in annotations.items()}
    return made


def stream_names(table: Table) -> list[str]:
    return [name for one in table.offline.entries if isinstance(one, StreamRoute) for name in one.server_names]


@pytest.mark.parametrize("names", ["open.test", "*.test", "free.test, open.test"])
def test_a_stream_takes_no_connections_of_a_host_of_another_namespace(names: str) -> None:
    made = passthrough(names)
    table = Table(VICTIM, made)
    assert stream_names(table) == []
    (problem,) = table.lost(made)
    assert problem.severity is Severity.ERROR
    assert "owned by Ingress team-a/shop" in problem.message
    assert ref_of(made) not in table.offline.accepted


def test_a_stream_has_names_of_its_own_namespace_and_those_that_are_free() -> None:
    table = Table(VICTIM, passthrough("open.test", namespace="team-a"), passthrough("free.test, b.open.test"))
    assert sorted(stream_names(table)) == ["b.open.test", "free.test", "open.test"]


def test_a_stream_that_was_there_before_a_host_keeps_its_name() -> None:
    later = ingress("shop", host="open.test", namespace="team-a", created=NEW)
    assert stream_names(Table(later, passthrough("open.test", created=OLD))) == ["open.test"]


def test_the_owner_shares_its_name_with_streams_too() -> None:
    assert stream_names(Table(SHARED, passthrough("open.test"))) == ["open.test"]


def test_a_stream_loses_its_name_when_an_older_object_comes_and_has_it_again_when_it_goes() -> None:
    translation = Translation(DIALECTS)
    translation.activate("a")
    found = []
    for delta in (applied(passthrough("open.test")), applied(VICTIM), deleted(VICTIM)):
        translation.apply(delta)
        for _ in translation.settle():
            pass
        chunks = translation.assembly.image.chunks()
        found.append(any(chunk.kind == "streams" for chunk in chunks))
    assert found == [True, False, True]
