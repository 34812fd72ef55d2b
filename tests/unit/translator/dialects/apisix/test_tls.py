"""ApisixTls: certificates of hosts, what is asked of clients, and certificates towards upstreams."""

from collections.abc import Callable, Iterable
from typing import Any

import pytest

from fakes.translator.apisix import Translated, resource, route, rule
from fakes.translator.deltas import applied, deleted, ingress, tls_secret
from headgate.common.deltas import Delta
from headgate.common.snapshot import decode_chunk
from headgate.common.table import Certificate, TableEntry, VirtualHost
from headgate.translator.composition import DIALECTS
from headgate.translator.translation import Translation


def tls(name: str = "tls", **spec: Any) -> Any:
    metadata = spec.pop("metadata", {})
    written = {"hosts": ["a.com"], "secret": {"name": "cert", "namespace": "default"}, **spec}
    return resource("ApisixTls", name, written, **metadata)


def presented(table: Translated) -> dict[str, tuple[str, ...]]:
    return {entry.key: entry.server_names for entry in table.offline.entries if isinstance(entry, Certificate)}


def opaque(name: str, **names: Any) -> Any:
    """A Secret with `cert` and `key`, as a watcher seals it."""
    made = tls_secret(name, **names)
    values = {"cert": made["sealed"]["values"]["tls.crt"], "key": made["sealed"]["values"]["tls.key"]}
    return {**made, "type": "Opaque", "sealed": {**made["sealed"], "values": values}}


def test_a_certificate_is_presented_for_the_hosts() -> None:
    hosts = ["A.com", "*.b.com"]
    table = Translated(tls(hosts=hosts), tls_secret("cert", "a.com", "*.b.com"))
    assert table.problems("tls") == []
    assert presented(table) == {"a/default/cert": ("*.b.com", "a.com")}


def test_a_secret_with_cert_and_key_will_do() -> None:
    made = opaque("cert")
    made["sealed"]["certificate"]["names"] = ["a.com"]
    assert presented(Translated(tls(), made)) == {"a/default/cert": ("a.com",)}


def test_a_secret_may_be_in_another_namespace_or_in_the_objects_own() -> None:
    elsewhere = tls(secret={"name": "cert", "namespace": "other"})
    assert presented(Translated(elsewhere, tls_secret("cert", "a.com", namespace="other"))).keys() == {"a/other/cert"}
    assert presented(Translated(tls(secret={"name": "cert"}), tls_secret("cert", "a.com"))).keys() == {"a/default/cert"}


@pytest.mark.parametrize(
    ("manifests", "reason"),
    [([], "SecretNotFound"), ([tls_secret("cert", "a.com", problem="expired")], "InvalidCertificate")],
)
def test_a_secret_that_cannot_be_used_is_said(manifests: Any, reason: str) -> None:
    table = Translated(tls(), *manifests)
    assert [(one.reason, one.field) for one in table.problems("tls")] == [(reason, "spec.secret.name")]
    assert presented(table) == {}


def test_a_certificate_that_is_not_valid_for_a_host_is_presented_and_said() -> None:
    table = Translated(tls(hosts=["b.com"]), tls_secret("cert", "a.com"))
    assert [(one.reason, one.field) for one in table.problems("tls")] == [("CertificateMismatch", "spec.hosts[0]")]
    assert presented(table) == {"a/default/cert": ("b.com",)}


def test_of_two_certificates_for_a_host_that_of_the_older_object_is_presented() -> None:
    new = tls("new", secret={"name": "two"}, metadata={"creationTimestamp": "2024-01-01T00:00:00Z"})
    old = tls("old", metadata={"creationTimestamp": "2020-01-01T00:00:00Z"})
    table = Translated(new, old, tls_secret("cert", "a.com"), tls_secret("two", "a.com"))
    assert presented(table) == {"a/default/cert": ("a.com",)}
    assert [one.reason for one in table.problems("new")] == ["CertificateConflict"]


@pytest.mark.parametrize(("hosts", "field"), [([], "spec.hosts"), (["a b"], "spec.hosts[0]")])
def test_hosts_that_are_none_are_refused(hosts: Any, field: str) -> None:
    assert Translated(tls(hosts=hosts), tls_secret("cert", "a.com")).errors("tls") == [field]


def test_one_certificate_serves_the_hosts_of_an_ingress_and_those_of_an_object() -> None:
    made = ingress("web", host="b.com")
    made["spec"]["tls"] = [{"hosts": ["b.com"], "secretName": "cert"}]
    table = Translated(tls(hosts=["a.com"]), made, tls_secret("cert", "a.com", "b.com"))
    assert presented(table) == {"a/default/cert": ("a.com", "b.com")}
    assert table.problems("tls") == []


# Changes


def secured(secret: str) -> Any:
    """An Ingress that names a Secret."""
    made = ingress("web", host="a.com")
    made["spec"]["tls"] = [{"hosts": ["a.com"], "secretName": secret}]
    return made


class Following:
    """A translation that objects come to and go from."""

    def __init__(self, *manifests: Any) -> None:
        self._translation = Translation(DIALECTS)
        self._translation.activate("a")
        self.apply(*manifests)

    def apply(self, *manifests: Any) -> None:
        self._take(map(applied, manifests))

    def delete(self, *manifests: Any) -> None:
        self._take(map(deleted, manifests))

    def _take(self, deltas: Iterable[Delta]) -> None:
        for delta in deltas:
            self._translation.apply(delta)
        for _ in self._translation.settle():
            pass

    @property
    def entries(self) -> list[TableEntry]:
        chunks = self._translation.assembly.image.chunks()
        return [entry for chunk in chunks for entry in decode_chunk(chunk.kind, chunk.content)]

    @property
    def chain(self) -> str | None:
        """What is presented for `a.com`."""
        certificates = [entry for entry in self.entries if isinstance(entry, Certificate)]
        found = [one.chain_pem for one in certificates if "a.com" in one.server_names]
        assert len(found) < 2
        return found[0] if found else None


def object_naming(secret: str) -> Any:
    return tls(secret={"name": secret, "namespace": "default"})


@pytest.mark.parametrize("naming", [object_naming, secured], ids=["ApisixTls", "Ingress"])
def test_a_certificate_follows_its_secret_and_who_names_it(naming: Callable[[str], Any]) -> None:
    first, second = tls_secret("cert", "a.com"), tls_secret("cert", "a.com")
    second["sealed"]["certificate"] |= {"chain_pem": "renewed", "fingerprint": "renewed"}
    following = Following(naming("wrong"), first)
    assert following.chain is None
    following.apply(naming("cert"))
    assert following.chain == "chain of cert"
    following.apply(second)
    assert following.chain == "renewed"
    following.delete(second)
    assert following.chain is None
    following.apply(first)
    assert following.chain == "chain of cert"
    following.delete(naming("cert"))
    assert following.chain is None


@pytest.mark.parametrize("naming", [object_naming, secured], ids=["ApisixTls", "Ingress"])
def test_a_secret_may_come_after_the_object_that_names_it(naming: Callable[[str], Any]) -> None:
    following = Following(naming("cert"))
    following.apply(tls_secret("cert", "a.com"))
    assert following.chain == "chain of cert"


# Certificates of clients

CLIENT = {"caSecret": {"name": "ca", "namespace": "default"}, "depth": 3}


def test_clients_have_to_show_a_certificate_of_the_authorities() -> None:
    authorities = tls_secret("ca", authorities_pem="authorities")
    table = Translated(tls(client=CLIENT), route(rule(hosts=["a.com"])), tls_secret("cert", "a.com"), authorities)
    found = table.host("a.com")
    assert found is not None
    assert found.tls is not None
    assert found.tls.client_auth is not None
    assert (found.tls.client_auth.ca_pem, found.tls.client_auth.depth) == ("authorities", 3)
    assert found.tls.client_auth.mode == "required"


def test_what_is_asked_of_clients_holds_for_rules_without_hosts_too() -> None:
    authorities = tls_secret("ca", authorities_pem="authorities")
    table = Translated(tls(client=CLIENT), route(rule()), tls_secret("cert", "a.com"), authorities)
    found = table.host("a.com")
    assert found is not None
    assert found.tls is not None
    assert found.unmatched == "next-host"
    assert table.winner("a.com/") == "route rule"


def asked_of(table: Translated, host: str) -> bool:
    found = table.host(host)
    assert found is not None
    return found.tls is not None and found.tls.client_auth is not None


def test_what_is_asked_for_all_names_of_a_domain_holds_for_hosts_with_routes_of_their_own() -> None:
    objects = [
        tls(hosts=["*.a.com"], client=CLIENT),
        route(rule(hosts=["x.a.com", "*.deep.a.com", "a.com", "xa.com"])),
        tls_secret("cert", "*.a.com"),
        tls_secret("ca", authorities_pem="authorities"),
    ]
    for order in (objects, objects[::-1]):
        table = Translated(*order)
        asked = [asked_of(table, host) for host in ("x.a.com", "**.deep.a.com", "a.com", "xa.com")]
        assert asked == [True, True, False, False]


def test_a_hosts_own_certificate_goes_before_that_of_its_domain() -> None:
    client = {"caSecret": {"name": "other"}}
    authorities = [tls_secret(name, authorities_pem=name) for name in ("ca", "other")]
    own = tls("own", hosts=["x.a.com"], client=client)
    table = Translated(tls(hosts=["*.a.com"], client=CLIENT), own, tls_secret("cert", "*.a.com"), *authorities)
    found = table.host("x.a.com")
    assert found is not None
    assert found.tls is not None
    assert found.tls.client_auth is not None
    assert found.tls.client_auth.ca_pem == "other"


def test_a_host_with_a_certificate_of_its_own_asks_what_goes_with_that_and_nothing_else() -> None:
    objects = [
        tls(hosts=["*.a.com"], client=CLIENT),
        tls("own", hosts=["x.a.com"]),
        route(rule(hosts=["x.a.com", "y.a.com"])),
        tls_secret("cert", "*.a.com"),
        tls_secret("ca", authorities_pem="authorities"),
    ]
    for order in (objects, objects[::-1]):
        table = Translated(*order)
        assert (asked_of(table, "x.a.com"), asked_of(table, "y.a.com")) == (False, True)


def test_what_is_asked_for_a_domain_comes_and_goes_with_its_object() -> None:
    following = Following(route(rule(hosts=["x.a.com"])), tls_secret("ca", authorities_pem="authorities"))
    wide = tls(hosts=["*.a.com"], client=CLIENT)

    def asked() -> bool:
        hosts = [entry for entry in following.entries if isinstance(entry, VirtualHost)]
        return any(entry.tls for entry in hosts if entry.host == "x.a.com")

    assert not asked()
    following.apply(wide)
    assert asked()
    following.delete(wide)
    assert not asked()


def test_some_paths_may_need_no_certificate() -> None:
    authorities = tls_secret("ca", authorities_pem="authorities")
    client = {"caSecret": {"name": "ca"}, "skip_mtls_uri_regex": ["/live.*"]}
    found = Translated(tls(client=client), tls_secret("cert", "a.com"), authorities).host("a.com")
    assert found is not None
    assert found.tls is not None
    assert found.tls.client_auth is not None
    assert (found.tls.client_auth.skip_paths, found.tls.client_auth.depth) == (("/live.*",), 1)


def test_authorities_that_are_not_there_let_nobody_in_and_are_said() -> None:
    table = Translated(tls(client=CLIENT), tls_secret("cert", "a.com"))
    found = table.host("a.com")
    assert table.errors("tls") == ["spec.client.caSecret.name"]
    assert found is not None
    assert found.tls is not None
    assert found.tls.client_auth is not None
    assert found.tls.client_auth.ca_pem == ""


# Towards upstreams


def to_upstream(**fields: Any) -> Any:
    return resource("ApisixUpstream", "web", {"scheme": "https", "tlsSecret": {"name": "ours"}, **fields})


def test_an_upstream_is_shown_our_certificate() -> None:
    table = Translated(route(rule()), to_upstream(), tls_secret("ours"))
    found = table.upstream().tls
    assert found is not None
    assert found.certificate_pem == "chain of ours"
    assert found.private_key is not None


def test_a_certificate_for_an_upstream_that_is_not_there_is_a_503_and_said() -> None:
    table = Translated(route(rule()), to_upstream())
    assert [one.reason for one in table.problems()] == ["InvalidTlsSecret"]
    assert "default/ours" in table.ask("GET", "a.com/").verdict


@pytest.mark.parametrize(
    ("client", "reason", "field"),
    [
        ({"caSecret": {"name": "ca"}, "skip_mtls_uri_regex": ["("]}, "InvalidValue", "skip_mtls_uri_regex[0]"),
        ({"caSecret": {"name": "bare"}}, None, None),
    ],
)
def test_authorities_of_clients_are_read_with_what_can_be_of_the_rest(client: Any, reason: Any, field: Any) -> None:
    secrets = tls_secret("cert", "a.com"), tls_secret("ca", authorities_pem="authority"), tls_secret("bare")
    table = Translated(tls(client=client), *secrets)
    found = [(one.reason, one.field) for one in table.problems("tls")]
    assert found == ([] if reason is None else [(reason, f"spec.client.{field}")])
    (host,) = [entry for entry in table.offline.entries if isinstance(entry, VirtualHost)]
    assert host.tls is not None
    assert host.tls.client_auth is not None
    assert host.tls.client_auth.ca_pem == ("authority" if reason else "chain of bare")
    assert host.tls.client_auth.skip_paths == ()


def test_a_resource_whose_fields_cannot_be_read_presents_nothing() -> None:
    table = Translated(tls(hosts=5), tls_secret("cert", "a.com"))
    assert table.problems("tls")
    assert presented(table) == {}
