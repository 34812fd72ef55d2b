"""TLSOptions as TLS policies."""

import ssl
from typing import Any, get_args

import pytest

from fakes.translator.deltas import tls_secret
from fakes.translator.known import Known
from headgate.common.problems import Problem
from headgate.common.resources import ObjectRef
from headgate.common.resources.traefik import TLS_OPTION
from headgate.common.table import ClientAuth, TlsPolicy
from headgate.common.table.tls import Curve
from headgate.gateway.tls.policy import HostTls
from headgate.translator.dialects.traefik.tls.names import CIPHERS, CURVES
from headgate.translator.dialects.traefik.tls.options import NOBODY, read_tls_option, translate_tls_option

CA = tls_secret("ca", authorities_pem="the authority")
OTHER = tls_secret("other", authorities_pem="another\n")
BARE = tls_secret("bare")


def read(known: Known | None = None, **spec: Any) -> tuple[TlsPolicy | None, list[Problem]]:
    problems: list[Problem] = []
    manifest = {"kind": "TLSOption", "metadata": {"name": "one", "namespace": "default"}, "spec": spec}
    return read_tls_option("default", manifest, known or Known(CA, OTHER, BARE), problems), problems


def policy(**spec: Any) -> TlsPolicy:
    found, problems = read(**spec)
    assert problems == []
    assert found is not None
    return found


def refused(**spec: Any) -> tuple[str | None, str]:
    """Return field and reason of the only problem of an option that lets no client in."""
    found, problems = read(**spec)
    assert found == NOBODY
    (problem,) = [each for each in problems if each.severity == "error"]
    return problem.field, problem.reason


def test_an_empty_option_is_as_none() -> None:
    assert policy() == TlsPolicy()
    manifest = {"kind": "TLSOption", "metadata": {"name": "one"}}
    assert read_tls_option("default", manifest, Known(), []) == TlsPolicy()


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ({"minVersion": "VersionTLS10"}, ("1.0", "")),
        ({"minVersion": "VersionTLS11", "maxVersion": "VersionTLS11"}, ("1.1", "1.1")),
        ({"maxVersion": "VersionTLS12"}, ("", "1.2")),
        ({"minVersion": "VersionTLS13", "maxVersion": "VersionTLS13"}, ("1.3", "1.3")),
    ],
)
def test_versions_are_bounds(written: dict[str, str], expected: tuple[str, str]) -> None:
    found = policy(**written)
    assert (found.min_version, found.max_version) == expected


@pytest.mark.parametrize(
    "written",
    [{"maxVersion": "VersionTLS11"}, {"minVersion": "VersionTLS13", "maxVersion": "VersionTLS12"}],
)
def test_bounds_without_a_version_between_them_let_no_client_in(written: dict[str, str]) -> None:
    assert refused(**written) == ("spec.maxVersion", "InvalidValue")


def test_a_version_that_there_is_not_is_warned_of_and_left_out() -> None:
    found, problems = read(minVersion="VersionTLS14", maxVersion="TLS12")
    assert found == TlsPolicy()
    assert [(one.severity, one.field) for one in problems] == [
        ("warning", "spec.minVersion"),
        ("warning", "spec.maxVersion"),
    ]


def test_suites_of_go_are_ciphers_of_openssl() -> None:
    found = policy(cipherSuites=["TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384", "TLS_RSA_WITH_AES_128_CBC_SHA"])
    assert found.ciphers == "ECDHE-RSA-AES256-GCM-SHA384:AES128-SHA"
    assert found.prefer_server_ciphers


def test_both_names_of_one_suite_are_one_cipher() -> None:
    name = "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305"
    assert policy(cipherSuites=[name, f"{name}_SHA256"]).ciphers == "ECDHE-ECDSA-CHACHA20-POLY1305"


def test_suites_of_tls_1_3_leave_those_of_older_versions_as_they_are_written() -> None:
    found = policy(cipherSuites=["TLS_AES_128_GCM_SHA256", "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"])
    assert (found.min_version, found.ciphers) == ("", "ECDHE-RSA-AES128-GCM-SHA256")


def test_suites_of_tls_1_3_alone_leave_none_to_older_versions() -> None:
    found = policy(cipherSuites=["TLS_AES_128_GCM_SHA256"])
    assert (found.min_version, found.ciphers) == ("1.3", "")


def test_every_suite_that_this_openssl_may_have_is_known_to_it_by_name() -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.set_ciphers("ALL:COMPLEMENTOFALL:@SECLEVEL=0")
    lacking = {name for name in CIPHERS.values() if name not in {one["name"] for one in context.get_ciphers()}}
    assert all("RC4" in name or "DES" in name for name in lacking)


@pytest.mark.parametrize(
    ("suites", "field"),
    [
        (["TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", "ECDHE-RSA-AES128-SHA"], "spec.cipherSuites[1]"),
        (["TLS_RSA_WITH_RC4_128_SHA"], "spec.cipherSuites"),
    ],
)
def test_suites_that_cannot_be_used_let_no_client_in(suites: list[str], field: str) -> None:
    assert refused(cipherSuites=suites) == (field, "InvalidValue")


def test_curves_have_both_names_and_one_order() -> None:
    assert policy(curvePreferences=["CurveP521", "secp384r1", "CurveP384", "x25519"]).curves == (
        "P-521",
        "P-384",
        "X25519",
    )
    assert set(CURVES.values()) == set(get_args(Curve))


def test_a_curve_that_there_is_not_lets_no_client_in() -> None:
    assert refused(curvePreferences=["CurveP256", "P-256"]) == ("spec.curvePreferences[1]", "InvalidValue")


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        (["http/1.1"], ("http/1.1",)),
        (["http/1.1", "h2"], ("http/1.1", "h2")),
        (["h2", "acme-tls/1"], ("h2",)),
        ([], ()),
    ],
)
def test_protocols_are_those_that_are_written(written: list[str], expected: tuple[str, ...]) -> None:
    assert policy(alpnProtocols=written).alpn == expected


def test_a_protocol_that_is_not_spoken_is_warned_of() -> None:
    found, problems = read(alpnProtocols=["mqtt", "http/1.1"])
    assert found == TlsPolicy(alpn=("http/1.1",))
    assert [(one.severity, one.field) for one in problems] == [("warning", "spec.alpnProtocols[0]")]


def test_names_and_tickets() -> None:
    assert policy(sniStrict=True, disableSessionTickets=True) == TlsPolicy(strict_names=True, session_tickets=False)


def test_what_has_no_effect_any_more_is_warned_of() -> None:
    found, problems = read(preferServerCipherSuites=True)
    assert found == TlsPolicy()
    assert [(one.severity, one.reason) for one in problems] == [("warning", "Deprecated")]


@pytest.mark.parametrize(
    ("kind", "mode"),
    [
        ("", "required"),
        ("RequestClientCert", "optional-any"),
        ("RequireAnyClientCert", "required-any"),
        ("VerifyClientCertIfGiven", "optional"),
        ("RequireAndVerifyClientCert", "required"),
    ],
)
def test_types_of_client_authentication_are_modes(kind: str, mode: Any) -> None:
    found = policy(clientAuth={"clientAuthType": kind, "secretNames": ["ca", "other"]})
    assert found.client_auth == ClientAuth(mode=mode, ca_pem="the authority\nanother\n", depth=16)


@pytest.mark.parametrize("written", [{"clientAuthType": "NoClientCert", "secretNames": ["absent"]}, {}])
def test_nothing_is_asked_of_clients(written: Any) -> None:
    assert policy(clientAuth=written).client_auth is None


@pytest.mark.parametrize("kind", ["RequestClientCert", "RequireAnyClientCert"])
def test_certificates_that_are_not_verified_need_no_authorities(kind: str) -> None:
    found = policy(clientAuth={"clientAuthType": kind, "secretNames": ["absent"]}).client_auth
    assert found is not None
    assert found.ca_pem == ""
    assert HostTls(TlsPolicy(client_auth=found)).problem == ""


@pytest.mark.parametrize("kind", ["VerifyClientCertIfGiven", "RequireAndVerifyClientCert"])
def test_certificates_that_are_verified_need_authorities(kind: str) -> None:
    assert refused(clientAuth={"clientAuthType": kind}) == ("spec.clientAuth.secretNames", "Required")


@pytest.mark.parametrize("names", [["absent"], ["bare"], ["absent", "bare"]])
@pytest.mark.parametrize("kind", ["", "VerifyClientCertIfGiven", "RequireAndVerifyClientCert"])
def test_without_any_authority_no_client_is_let_in(kind: str, names: list[str]) -> None:
    field = "spec.clientAuth.secretNames[0]"
    assert refused(clientAuth={"clientAuthType": kind, "secretNames": names}) == (field, "InvalidAuthorities")


def test_one_missing_authority_costs_its_clients_alone() -> None:
    found, problems = read(clientAuth={"secretNames": ["absent", "ca"]})
    assert found == TlsPolicy(client_auth=ClientAuth(ca_pem="the authority\n", depth=16))
    assert [(one.severity, one.field) for one in problems] == [("warning", "spec.clientAuth.secretNames[0]")]


def test_authorities_of_another_namespace_are_not_looked_for() -> None:
    elsewhere = Known(tls_secret("ca", namespace="other", authorities_pem="x"))
    assert read(elsewhere, clientAuth={"secretNames": ["ca"]})[0] == NOBODY


def test_secrets_that_are_assumed_are_no_mistake() -> None:
    found, problems = read(Known(is_assumed=True), clientAuth={"secretNames": ["ca"]})
    assert (found is not None and found != NOBODY, problems) == (True, [])


def test_an_option_that_lets_no_client_in_is_one_that_gateways_refuse() -> None:
    assert HostTls(NOBODY).problem.startswith("tls.client_auth.ca_pem")


def test_an_option_that_cannot_be_read_lets_no_client_in_if_it_asks_something_of_clients() -> None:
    assert read(sniStrict="maybe", clientAuth={})[0] == NOBODY
    found, problems = read(sniStrict="maybe")
    assert found is None
    assert [one.field for one in problems] == ["spec.sniStrict"]


def test_the_default_option_is_the_policy_of_the_https_listener() -> None:
    ref = ObjectRef("a", TLS_OPTION.group, TLS_OPTION.resource, "default", "default")
    manifest = {"kind": "TLSOption", "metadata": {"name": "default"}, "spec": {"sniStrict": True}}
    (listener,) = translate_tls_option(ref, manifest, Known()).own_listeners
    assert (listener.key, listener.tls) == ("https", TlsPolicy(strict_names=True))
    assert str(listener.provenance.name) == "default"
    assert translate_tls_option(ref._replace(name="one"), manifest, Known()).own_listeners == ()
