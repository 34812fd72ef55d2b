"""What is said of an object before it is let in."""

from collections.abc import Sequence
from typing import Any

import pytest

from fakes.translator.apisix import resource
from fakes.translator.deltas import (
    applied,
    deleted,
    endpoint_slice,
    ingress,
    ingress_class,
    ref_of,
    service,
    service_export,
    tls_secret,
)
from headgate.common.admission import Basis, Finding, NamedObject, Opinion, Outcome, Proposal
from headgate.common.problems import Severity
from headgate.translator.admission.examine import MAX_FINDINGS, examine
from headgate.translator.composition import DIALECTS
from headgate.translator.translation import Translation

OLD, NEW = "2024-01-01T00:00:00Z", "2024-06-01T00:00:00Z"
WEB = (service("web"), endpoint_slice("web", "10.0.0.1"))


def world(*manifests: Any) -> Translation:
    translation = Translation(DIALECTS)
    translation.activate("a")
    for manifest in manifests:
        translation.apply(applied(manifest))
    settle(translation)
    return translation


def settle(translation: Translation) -> None:
    for _ in translation.settle():
        pass


def propose(translation: Translation, manifest: Any, before: Any = None, *, is_update: bool = False) -> Opinion:
    proposal = Proposal(ref=ref_of(manifest), object=manifest, is_update=is_update or before is not None, before=before)
    return examine(translation, proposal)


def errors(opinion: Opinion) -> list[Finding]:
    return [finding for finding in opinion.findings if finding.problem.severity is Severity.ERROR]


def only(opinion: Opinion) -> Finding:
    (finding,) = opinion.findings
    return finding


def reasons(opinion: Opinion) -> Sequence[str]:
    return [finding.problem.reason for finding in opinion.findings]


def test_an_object_with_nothing_wrong_has_no_findings() -> None:
    assert propose(world(*WEB), ingress("new", host="a.example")) == Opinion(outcome=Outcome.JUDGED)


def test_an_ingress_that_another_cluster_has_is_let_in_where_both_export_its_service() -> None:
    translation = world(*WEB, ingress("web", host="a.example", created=OLD))
    translation.activate("b")
    proposal = Proposal(ref=ref_of(ingress("web"), "b"), object=ingress("web", host="a.example", created=NEW))
    translation.apply(applied(service("web"), "b"))
    settle(translation)
    assert "HostNotOwned" in reasons(examine(translation, proposal))
    for cluster in ("a", "b"):
        translation.apply(applied(service_export("web"), cluster))
    settle(translation)
    assert reasons(examine(translation, proposal)) == []


def test_nothing_is_kept_of_a_proposal() -> None:
    translation = world(*WEB, ingress("web", host="a.example"))
    graph, assembly = translation.graph, translation.assembly
    before = (graph.runs, graph.pending, dict(assembly.fragments))
    digests = [chunk.digest for chunk in assembly.image.chunks()]
    assembly.touched.clear()
    assembly.changed.clear()
    propose(translation, ingress("new", host="a.example", class_name="headgate"))
    propose(translation, ingress("web", host="b.example"), ingress("web", host="a.example"))
    settle(translation)
    assert before == (graph.runs, graph.pending, assembly.fragments)
    assert digests == [chunk.digest for chunk in assembly.image.chunks()]
    assert not assembly.touched
    assert not assembly.changed


def test_what_is_wrong_with_the_object_itself_is_told_with_its_field() -> None:
    finding = only(propose(world(*WEB), ingress("new", host="Not_A_Host")))
    assert finding.basis is Basis.OWN
    assert finding.problem.field == "spec.rules[0].host"
    assert finding.is_new


def test_a_pattern_that_re2_refuses_is_told() -> None:
    manifest = ingress("new", host="a.example", annotations={"headgate.dev/path-type": "regex"}, path="/(?=x)")
    manifest["spec"]["rules"][0]["http"]["paths"][0]["pathType"] = "ImplementationSpecific"
    finding = only(propose(world(*WEB), manifest))
    assert (finding.problem.reason, finding.basis) == ("InvalidPath", Basis.OWN)


def test_an_unknown_annotation_is_a_warning_with_a_suggestion() -> None:
    finding = only(propose(world(*WEB), ingress("new", host="a.example", annotations={"headgate.dev/retrys": "2"})))
    assert finding.problem.severity is Severity.WARNING
    assert "headgate.dev/retries" in finding.problem.message


def test_a_path_of_another_object_names_its_owner() -> None:
    translation = world(*WEB, ingress("old", host="a.example", namespace="shop", created=OLD))
    finding = only(propose(translation, ingress("new", host="a.example", created=NEW)))
    assert (finding.problem.reason, finding.basis) == ("HostNotOwned", Basis.CONFLICT)
    assert "Ingress shop/old in cluster a" in finding.problem.message
    assert finding.problem.field == "spec.rules[0].http.paths[0].path"


def test_a_canary_of_another_namespace_is_refused_as_its_status_would_say() -> None:
    translation = world(*WEB, ingress("old", host="a.example", namespace="shop", created=OLD))
    annotations = {"headgate.dev/canary": "true", "headgate.dev/canary-weight": "100"}
    canary = ingress("new", host="a.example", created=NEW, annotations=annotations)
    finding = only(propose(translation, canary))
    assert (finding.problem.reason, finding.basis) == ("HostNotOwned", Basis.CONFLICT)
    translation.apply(applied(canary))
    settle(translation)
    condition = translation.condition(ref_of(canary))
    assert condition is not None
    assert finding.problem in condition.problems


def test_client_certificates_for_the_host_of_another_namespace_are_refused() -> None:
    translation = world(*WEB, ingress("old", host="a.example", namespace="shop", created=OLD))
    spec = {"hosts": ["a.example"], "secret": {"name": "cert", "namespace": "default"}}
    client = {"client": {"caSecret": {"name": "nowhere", "namespace": "default"}}}
    asking = resource("ApisixTls", "tls", spec | client, creationTimestamp=NEW)
    found = [one for one in propose(translation, asking).findings if one.problem.reason == "HostNotOwned"]
    assert [(one.basis, one.problem.field) for one in found] == [(Basis.CONFLICT, "spec.client")]


def test_a_stream_for_the_host_of_another_namespace_is_refused() -> None:
    translation = world(*WEB, ingress("old", host="a.example", namespace="shop", created=OLD))
    taking = service("db")
    annotations = {"stream-protocol": "tls-passthrough", "stream-server-names": "a.example"}
    taking["metadata"] |= {
        "creationTimestamp": NEW,
        "annotations": {f"headgate.dev/{name}": value for name, value in annotations.items()},
    }
    found = [one for one in propose(translation, taking).findings if one.problem.reason == "HostNotOwned"]
    assert [one.basis for one in found] == [Basis.CONFLICT]


def test_an_older_object_of_another_namespace_may_not_take_a_host_over() -> None:
    old = ingress("old", host="a.example", namespace="shop", created=OLD)
    translation = world(*WEB, old, ingress("young", host="b.example", path="/x", created=NEW))
    moved = ingress("old", host="b.example", namespace="shop", created=OLD)
    found = [one for one in propose(translation, moved, old).findings if one.problem.reason == "HostNotOwned"]
    assert [(one.basis, one.problem.severity) for one in found] == []
    claiming = ingress("old", host="b.example", path="/x", namespace="shop", created=OLD)
    (finding,) = [one for one in propose(translation, claiming, old).findings if one.problem.reason == "HostNotOwned"]
    assert (finding.basis, finding.problem.severity) == (Basis.CONFLICT, Severity.ERROR)
    assert "Ingress default/young in cluster a has this now" in finding.problem.message


def test_an_owner_need_not_ask_its_guests() -> None:
    owner = ingress("web", host="a.example", namespace="shop", created=OLD)
    translation = world(*WEB, owner, ingress("guest", host="a.example", path="/x", created=NEW))
    more = ingress("more", host="a.example", path="/x", namespace="shop", created=NEW)
    (finding,) = [one for one in propose(translation, more).findings if one.problem.reason == "HostNotOwned"]
    assert (finding.basis, finding.problem.severity) == (Basis.CONSEQUENCE, Severity.WARNING)
    assert "Ingress default/guest in cluster a would lose by this" in finding.problem.message


def test_an_older_object_may_not_take_what_a_younger_one_has() -> None:
    old = ingress("old", host="a.example", created=OLD)
    translation = world(*WEB, old, ingress("young", host="b.example", created=NEW))
    finding = only(propose(translation, ingress("old", host="b.example", created=OLD), old))
    assert (finding.problem.reason, finding.basis) == ("PathConflict", Basis.CONFLICT)
    assert finding.problem.severity is Severity.ERROR
    assert "Ingress default/young in cluster a has this now" in finding.problem.message
    assert finding.problem.field == "spec.rules[0].http.paths[0].path"


def test_a_path_that_was_given_back_may_be_taken() -> None:
    owner = ingress("old", host="a.example", created=OLD)
    translation = world(*WEB, owner)
    translation.apply(deleted(owner))
    settle(translation)
    assert not propose(translation, ingress("new", host="a.example", created=NEW)).findings


def test_a_certificate_that_another_object_has_for_the_host_is_a_warning() -> None:
    def with_tls(name: str, secret: str, path: str, created: str) -> Any:
        manifest = ingress(name, host="a.example", path=path, created=created)
        manifest["spec"]["tls"] = [{"hosts": ["a.example"], "secretName": secret}]
        return manifest

    secrets = tls_secret("one", "a.example"), tls_secret("two", "a.example")
    translation = world(*WEB, *secrets, with_tls("old", "one", "/", OLD))
    finding = only(propose(translation, with_tls("new", "two", "/new", NEW)))
    assert (finding.problem.reason, finding.problem.severity) == ("CertificateConflict", Severity.WARNING)
    assert "Secret default/one by Ingress default/old" in finding.problem.message


@pytest.mark.parametrize(
    ("manifest", "reason"),
    [
        (ingress("new", host="a.example", service="missing"), "ServiceNotFound"),
        (ingress("new", host="a.example", port="grpc"), "PortNotFound"),
    ],
)
def test_what_a_reference_lacks_is_told_apart_from_the_objects_own_mistakes(manifest: Any, reason: str) -> None:
    finding = only(propose(world(*WEB), manifest))
    assert (finding.problem.reason, finding.basis) == (reason, Basis.REFERENCE)
    assert finding.problem.severity is Severity.ERROR


def test_a_missing_secret_is_a_reference() -> None:
    manifest = ingress("new", host="a.example")
    manifest["spec"]["tls"] = [{"hosts": ["a.example"], "secretName": "later"}]
    finding = only(propose(world(*WEB), manifest))
    assert (finding.problem.reason, finding.basis) == ("SecretNotFound", Basis.REFERENCE)


def test_a_secret_that_the_object_would_be_the_first_to_name_is_not_missing() -> None:
    manifest, secret = ingress("new", host="a.example"), tls_secret("first", "a.example")
    manifest["spec"]["tls"] = [{"hosts": ["a.example"], "secretName": "first"}]
    named = (NamedObject(ref=ref_of(secret), object=secret),)
    translation = world(*WEB)
    assert not examine(translation, Proposal(ref=ref_of(manifest), object=manifest, named=named)).findings
    assert only(propose(translation, manifest)).problem.reason == "SecretNotFound"


def test_a_backend_that_can_never_be_served_is_the_objects_own_mistake() -> None:
    manifest = ingress("new", host="a.example")
    backend = {"resource": {"apiGroup": "x.example", "kind": "Bucket", "name": "b"}}
    manifest["spec"]["rules"][0]["http"]["paths"][0]["backend"] = backend
    finding = only(propose(world(*WEB), manifest))
    assert (finding.problem.reason, finding.basis) == ("UnsupportedResourceBackend", Basis.OWN)


def test_a_canary_may_come_before_its_main() -> None:
    canary = ingress("canary", host="a.example", annotations={"headgate.dev/canary": "true"})
    finding = only(propose(world(*WEB), canary))
    assert (finding.problem.reason, finding.basis) == ("CanaryWithoutMain", Basis.REFERENCE)


def test_another_controllers_object_is_none_of_ours() -> None:
    translation = world(*WEB, ingress_class("other", "k8s.io/ingress-nginx"))
    broken = ingress("new", host="Not_A_Host", class_name="other")
    assert propose(translation, broken).outcome is Outcome.FOREIGN


def test_a_proposal_is_judged_by_the_class_that_it_would_have() -> None:
    translation = world(*WEB, ingress_class("other", "k8s.io/ingress-nginx"), ingress_class("headgate"))
    before = ingress("web", host="Not_A_Host", class_name="other")
    translation.apply(applied(before))
    settle(translation)
    assert only(propose(translation, ingress("web", host="Not_A_Host", class_name="headgate"), before)).is_new


def test_a_mistake_that_was_there_before_is_not_new() -> None:
    before = ingress("web", host="Not_A_Host")
    after = ingress("web", host="Not_A_Host", path="/more")
    finding = only(propose(world(*WEB, before), after, before))
    assert not finding.is_new


def test_a_mistake_is_not_new_because_it_moved_in_a_list() -> None:
    def rules(*hosts: str) -> Any:
        return ingress("web", spec={"rules": [ingress("x", host=host)["spec"]["rules"][0] for host in hosts]})

    before, after = rules("good.example", "Not_A_Host"), rules("Not_A_Host")
    assert not only(propose(world(*WEB, before), after, before)).is_new


def test_the_same_mistake_once_more_is_new() -> None:
    def rules(*hosts: str) -> Any:
        return ingress("web", spec={"rules": [ingress("x", host=host)["spec"]["rules"][0] for host in hosts]})

    before, after = rules("Not_A_Host"), rules("Not_A_Host", "Not_A_Host")
    assert [finding.is_new for finding in propose(world(*WEB, before), after, before).findings] == [True, False]


def test_a_conflict_that_was_there_before_is_not_new() -> None:
    young = ingress("young", host="a.example", created=NEW)
    translation = world(*WEB, ingress("old", host="a.example", created=OLD), young)
    after = ingress("young", host="a.example", created=NEW, annotations={"headgate.dev/retries": "2"})
    assert not only(propose(translation, after, young)).is_new


def test_an_update_without_its_version_before_is_compared_with_the_worlds() -> None:
    before = ingress("web", host="Not_A_Host")
    translation = world(*WEB, before)
    assert not only(propose(translation, ingress("web", host="Not_A_Host", path="/x"), is_update=True)).is_new
    assert only(propose(translation, ingress("web", host="Other_Host"), is_update=True)).is_new


def test_the_last_good_version_does_not_hide_what_is_proposed() -> None:
    good, bad = ingress("web", host="a.example"), ingress("web", host="Not_A_Host")
    translation = world(*WEB, good, bad)
    assert reasons(propose(translation, bad, good)) == ["InvalidHost"]


def test_a_stream_port_that_another_service_has_names_its_owner() -> None:
    def stream(name: str, created: str) -> Any:
        manifest = service(name)
        manifest["metadata"] |= {"annotations": {"headgate.dev/stream-port": "9000"}, "creationTimestamp": created}
        return manifest

    translation = world(stream("old", OLD), endpoint_slice("old", "10.0.0.1"), endpoint_slice("new", "10.0.0.2"))
    finding = only(propose(translation, stream("new", NEW)))
    assert (finding.problem.reason, finding.basis) == ("StreamConflict", Basis.CONFLICT)
    assert "Service default/old" in finding.problem.message


def test_a_service_that_nobody_of_ours_uses_is_none_of_ours() -> None:
    assert propose(world(*WEB), service("unused")).outcome is Outcome.FOREIGN


def test_a_service_that_loses_a_port_in_use_says_who_would_miss_it() -> None:
    translation = world(*WEB, ingress("one", host="a.example"), ingress("two", host="b.example"))
    finding = only(propose(translation, service("web", port=81), service("web")))
    assert (finding.problem.reason, finding.basis) == ("PortNotFound", Basis.CONSEQUENCE)
    assert finding.problem.severity is Severity.WARNING
    assert "Ingress default/one in cluster a and 1 more" in finding.problem.message


def test_a_secret_that_cannot_be_used_is_refused_where_it_is_in_use() -> None:
    manifest = ingress("web", host="a.example")
    manifest["spec"]["tls"] = [{"hosts": ["a.example"], "secretName": "cert"}]
    translation = world(*WEB, tls_secret("cert", "a.example"), manifest)
    broken = tls_secret("cert", problem="tls.key does not belong to the certificate in tls.crt")
    opinion = propose(translation, broken, tls_secret("cert", "a.example"))
    (own,) = errors(opinion)
    assert (own.problem.reason, own.basis) == ("InvalidCertificate", Basis.OWN)
    assert propose(world(*WEB), broken).outcome is Outcome.FOREIGN


def test_a_certificate_that_no_longer_covers_a_host_says_whose() -> None:
    manifest = ingress("web", host="a.example")
    manifest["spec"]["tls"] = [{"hosts": ["a.example"], "secretName": "cert"}]
    translation = world(*WEB, tls_secret("cert", "a.example"), manifest)
    finding = only(propose(translation, tls_secret("cert", "b.example"), tls_secret("cert", "a.example")))
    assert (finding.problem.reason, finding.basis) == ("CertificateNameMismatch", Basis.CONSEQUENCE)
    assert "Ingress default/web in cluster a would have" in finding.problem.message


def test_a_kind_that_is_not_translated_is_none_of_ours() -> None:
    manifest = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}}
    assert propose(world(*WEB), manifest).outcome is Outcome.FOREIGN


def test_errors_come_first_and_their_number_is_bounded() -> None:
    paths = [{"path": "/", "pathType": "Wrong"} for _ in range(MAX_FINDINGS)]
    rule = {"host": "a.example", "http": {"paths": paths}}
    manifest = ingress("new", spec={"rules": [rule]}, annotations={"headgate.dev/unknown": "x"})
    opinion = propose(world(*WEB), manifest)
    assert len(opinion.findings) == MAX_FINDINGS
    assert opinion.omitted > 0
    assert all(finding.problem.severity is Severity.ERROR for finding in opinion.findings)
