"""What the end-to-end tests of ingress-nginx say of its webhook (`test/e2e/admission/admission.go`)."""

from dataclasses import replace
from typing import Any

import pytest

from fakes.translator.deltas import applied, endpoint_slice, ingress, ingress_class, ref_of, service
from fakes.translator.nginx import nginx_ingress
from headgate.common.admission import Opinion, Outcome, Proposal
from headgate.translator.admission.examine import examine
from headgate.translator.composition import DIALECTS
from headgate.translator.translation import Translation
from headgate.translator.world.settings import NginxSettings, TranslationSettings
from headgate.watcher.admission.verdict import AdmissionPolicy, give_verdict

SETTINGS = TranslationSettings(
    controller_names=("headgate.dev/ingress-controller", "k8s.io/ingress-nginx"),
    class_names=("headgate", "nginx"),
    nginx=NginxSettings(allow_snippets=True),
)
CLASS = ingress_class("nginx", "k8s.io/ingress-nginx")


def cluster(*manifests: Any, settings: TranslationSettings = SETTINGS) -> Translation:
    """A translation of a cluster with the class of ingress-nginx and two Services."""
    translation = Translation(DIALECTS, settings)
    translation.activate("a")
    services = (part for name in ("one", "two") for part in (service(name), endpoint_slice(name, "10.0.0.1")))
    for manifest in (CLASS, *services, *manifests):
        translation.apply(applied(manifest))
    for _ in translation.settle():
        pass
    return translation


def judged(translation: Translation, manifest: Any, before: Any = None) -> Opinion:
    proposal = Proposal(ref=ref_of(manifest), object=manifest, is_update=before is not None, before=before)
    return examine(translation, proposal)


def refusal(translation: Translation, manifest: Any, before: Any = None) -> str:
    """Return why the webhook refuses an object; empty if it lets it in."""
    found = give_verdict("Ingress", judged(translation, manifest, before), AdmissionPolicy("ignore", "warn")).refusal
    return found.message if found is not None else ""


def of_class(name: str, *paths: str, path_type: str = "Prefix", to: str = "one", **annotations: str) -> Any:
    """Return an Ingress of the class nginx."""
    made = nginx_ingress(name, host="admission-test", class_name="nginx", **annotations)
    backend = {"service": {"name": to, "port": {"number": 80}}}
    entries = [{"path": path, "pathType": path_type, "backend": backend} for path in paths or ("/",)]
    made["spec"]["rules"][0]["http"]["paths"] = entries
    return made


def options(**data: str) -> Any:
    metadata = {"name": "ingress-nginx-controller", "namespace": "ingress-nginx"}
    named = {key.replace("_", "-"): value for key, value in data.items()}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": named}


@pytest.mark.parametrize(
    ("first", "second", "is_refused"),
    [
        (("/",), ("/",), True),
        (("/safe-path-1", "/conflict-path"), ("/safe-path-2", "/conflict-path"), True),
        (("/safe-path-1",), ("/safe-path-2",), False),
        (("/",), ("/below",), False),
    ],
)
def test_a_host_and_path_of_another_ingress_are_refused(
    first: tuple[str, ...], second: tuple[str, ...], is_refused: bool
) -> None:
    found = refusal(cluster(of_class("first", *first)), of_class("second", *second))
    assert ("Ingress default/first" in found) is is_refused
    assert bool(found) is is_refused


def test_an_ingress_overlaps_with_itself_as_it_likes() -> None:
    first = of_class("first")
    assert refusal(cluster(first), of_class("first", "/", "/more"), first) == ""


def test_a_canary_may_overlap() -> None:
    canary = of_class("second", to="two", canary="true", canary_by_header="CanaryByHeader")
    assert refusal(cluster(of_class("first")), canary) == ""


@pytest.mark.parametrize("path", ["/etc/nginx", "/x/var/run/secrets", "/a_by_lua"])
def test_a_forbidden_path_is_refused(path: str) -> None:
    assert "must not contain" in refusal(cluster(of_class("valid", "/mypage")), of_class("second", path))


@pytest.mark.parametrize(
    "annotations",
    [
        {"configuration_snippet": "something invalid"},
        {"configuration_snippet": "invalid directive\n"},
        {"connection_proxy_header": "a;}"},
        {"auth_type": "kerberos"},
        {"server_alias": "a b"},
    ],
)
def test_a_bad_annotation_is_refused(annotations: dict[str, str]) -> None:
    assert refusal(cluster(), of_class("first", **annotations)) != ""


@pytest.mark.parametrize(
    ("words", "annotations", "is_refused"),
    [
        ("}", {"connection_proxy_header": "a;}"}, True),
        ("set_by_lua", {"connection_proxy_header": "set_by_lua"}, True),
        ("other, set_by_lua", {"configuration_snippet": "set_by_lua x;"}, True),
        ("alive", {"connection_proxy_header": "keep-alive"}, True),
        ("set_by_lua", {"connection_proxy_header": "keep-alive"}, False),
    ],
)
def test_a_forbidden_word_in_an_annotation_is_refused(
    words: str, annotations: dict[str, str], is_refused: bool
) -> None:
    translation = cluster(options(annotation_value_word_blocklist=words))
    assert bool(refusal(translation, of_class("first", **annotations))) is is_refused


MEDIUM = {"default_backend": "bla", "denylist_source_range": "1.1.1.1/32"}
"""Annotations of low and of medium risk."""


@pytest.mark.parametrize(
    ("more", "is_refused"),
    [
        ({}, False),
        ({"modsecurity_transaction_id": "bla123", "modsecurity_snippet": "some random stuff;"}, True),
        ({"modsecurity_transaction_id": "bla123"}, True),
        ({"server_alias": "other.example"}, True),
        ({"configuration_snippet": "# nothing"}, True),
        ({"rewrite_target": "/"}, False),
    ],
)
def test_annotations_of_a_higher_risk_than_the_operator_takes_are_refused(
    more: dict[str, str], is_refused: bool
) -> None:
    allowed = {"allow_snippet_annotations": "true", "annotations_risk_level": "Medium"}
    translation, before = cluster(options(**allowed)), of_class("first", **MEDIUM)
    assert refusal(translation, before) == ""
    translation.apply(applied(before))
    assert bool(refusal(translation, of_class("first", **MEDIUM, **more), before)) is is_refused


@pytest.mark.parametrize(("is_disabled", "is_refused"), [(True, True), (False, False)])
def test_an_ingress_for_all_hosts_is_refused_where_these_are_left_out(is_disabled: bool, is_refused: bool) -> None:
    settings = replace(SETTINGS, nginx=NginxSettings(disable_catch_all=is_disabled))
    made = of_class("first")
    made["spec"]["defaultBackend"] = {"service": {"name": "one", "port": {"number": 80}}}
    assert bool(refusal(cluster(settings=settings), made)) is is_refused


PATTERN = "/foo/bar/[a-z]{3}"


@pytest.mark.parametrize(
    ("path", "path_type", "is_refused"),
    [
        (PATTERN, "Exact", True),
        (PATTERN, "Prefix", True),
        ("/foo(/|$)(.*)", "Prefix", True),
        (PATTERN, "ImplementationSpecific", False),
        ("/bloblo", "Prefix", False),
        ("/a-b_c/D.e/1", "Exact", False),
    ],
)
def test_a_pattern_as_a_path_of_another_type_is_refused(path: str, path_type: str, is_refused: bool) -> None:
    rewriting = {"use_regex": "true", "rewrite_target": "/new/backend"} if path_type[0] == "I" else {}
    made = of_class("first", path, path_type=path_type, **rewriting)
    for written, expected in (({}, is_refused), ({"strict_validate_path_type": "true"}, is_refused),
                              ({"strict_validate_path_type": "false"}, False)):  # fmt: skip
        assert bool(refusal(cluster(options(**written)), made)) is expected


def test_an_ingress_with_such_a_path_that_is_there_may_change() -> None:
    before = of_class("first", PATTERN)
    assert refusal(cluster(before), of_class("first", PATTERN, "/more"), before) == ""


@pytest.mark.parametrize("by_annotation", [False, True])
def test_a_good_ingress_of_the_class_is_let_in(by_annotation: bool) -> None:
    made = ingress("extensions", host="extensions", service="one", **({} if by_annotation else {"class_name": "nginx"}))
    if by_annotation:
        made["metadata"]["annotations"] = {"kubernetes.io/ingress.class": "nginx"}
    assert judged(cluster(), made) == Opinion(outcome=Outcome.JUDGED)


def test_a_bad_ingress_of_an_unknown_class_is_let_in() -> None:
    bad = nginx_ingress("other", class_name="nginx-other", configuration_snippet="invalid directive\n")
    assert judged(cluster(), bad).outcome is Outcome.FOREIGN
    assert refusal(cluster(), bad) == ""
