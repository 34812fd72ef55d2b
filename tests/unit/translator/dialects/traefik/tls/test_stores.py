"""TLSStores as certificates."""

from typing import Any

import pytest

from fakes.translator.deltas import tls_secret
from fakes.translator.known import Known
from headgate.common.resources import ObjectRef
from headgate.common.resources.traefik import TLS_STORE
from headgate.common.table import OTHER_NAMES
from headgate.translator.dialects.traefik.tls.store import translate_tls_store
from headgate.translator.fragments.fragment import Fragment

SECRETS = (tls_secret("one", "b.com", "a.com"), tls_secret("two", "*.c.com"), tls_secret("bad", problem="has ended"))


def translate(name: str = "default", known: Known | None = None, **spec: Any) -> Fragment:
    ref = ObjectRef("a", TLS_STORE.group, TLS_STORE.resource, "default", name)
    manifest = {"kind": "TLSStore", "metadata": {"name": name, "namespace": "default"}, "spec": spec}
    return translate_tls_store(ref, manifest, known or Known(*SECRETS))


def presented(fragment: Fragment) -> list[tuple[str, str]]:
    return [(claim.name, claim.certificate.key) for claim in fragment.names]


def said(fragment: Fragment) -> list[tuple[str, str, str | None]]:
    return [(one.severity, one.reason, one.field) for one in fragment.problems]


def test_the_default_certificate_is_for_names_that_no_other_has() -> None:
    fragment = translate(defaultCertificate={"secretName": "one"})
    assert presented(fragment) == [(OTHER_NAMES, "a/default/one")]
    assert said(fragment) == []


def test_further_certificates_are_for_the_names_that_they_are_valid_for() -> None:
    fragment = translate(certificates=[{"secretName": "one"}, {"secretName": "two"}])
    assert presented(fragment) == [("a.com", "a/default/one"), ("b.com", "a/default/one"), ("*.c.com", "a/default/two")]


@pytest.mark.parametrize(("name", "reason"), [("absent", "SecretNotFound"), ("bad", "InvalidCertificate")])
def test_a_certificate_that_cannot_be_used_costs_no_other(name: str, reason: str) -> None:
    fragment = translate(defaultCertificate={"secretName": name}, certificates=[{"secretName": "two"}])
    assert presented(fragment) == [("*.c.com", "a/default/two")]
    assert said(fragment) == [("error", reason, "spec.defaultCertificate.secretName")]
    fragment = translate(defaultCertificate={"secretName": "one"}, certificates=[{"secretName": name}])
    assert presented(fragment) == [(OTHER_NAMES, "a/default/one")]
    assert said(fragment) == [("error", reason, "spec.certificates[0].secretName")]


def test_only_the_default_store_is_used() -> None:
    fragment = translate("other", defaultCertificate={"secretName": "one"})
    assert (presented(fragment), said(fragment)) == ([], [("warning", "NotUsed", "metadata.name")])


def test_a_certificate_that_a_resolver_would_get_is_not_asked_for() -> None:
    generated = {"resolver": "le", "domain": {"main": "a.com"}}
    assert said(translate(defaultGeneratedCert=generated)) == [
        ("warning", "UnsupportedField", "spec.defaultGeneratedCert")
    ]
    both = translate(defaultGeneratedCert=generated, defaultCertificate={"secretName": "one"})
    assert (presented(both), said(both)) == ([(OTHER_NAMES, "a/default/one")], [])


def test_a_store_that_cannot_be_read_says_where() -> None:
    fragment = translate(certificates={"secretName": "one"})
    assert (presented(fragment), [field for _, _, field in said(fragment)]) == ([], ["spec.certificates"])


def test_secrets_that_are_assumed_are_no_mistake() -> None:
    known = Known(is_assumed=True)
    fragment = translate(known=known, defaultCertificate={"secretName": "x"}, certificates=[{"secretName": "y"}])
    assert said(fragment) == []
