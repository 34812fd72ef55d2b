"""What is said of resources of Apache APISIX before they are let in: the same as in their status and by the command."""

from typing import Any

import pytest

from fakes.translator.apisix import Translated, resource, route, rule
from fakes.translator.deltas import applied, endpoint_slice, ingress, ingress_class, ref_of, service, tls_secret
from headgate.common.admission import Basis, Finding, Opinion, Outcome, Proposal
from headgate.common.problems import Severity
from headgate.translator.admission.examine import examine
from headgate.translator.composition import DIALECTS
from headgate.translator.translation import Translation
from headgate.translator.world.settings import DEFAULT_SETTINGS, TranslationSettings

OLD, NEW = {"creationTimestamp": "2020-01-01T00:00:00Z"}, "2024-01-01T00:00:00Z"
APISIX = "apisix.apache.org/apisix-ingress-controller"


def propose(
    manifest: Any, *present: Any, before: Any = None, settings: TranslationSettings = DEFAULT_SETTINGS
) -> Opinion:
    """Return what is said of an object, or of an update of one, beside others."""
    translation = Translation(DIALECTS, settings)
    translation.activate("a")
    others = [] if before is None else [before]
    for one in (service("web"), endpoint_slice("web", "10.0.0.1"), *present, *others):
        translation.apply(applied(one))
    for _ in translation.settle():
        pass
    proposal = Proposal(ref=ref_of(manifest), object=manifest, is_update=before is not None, before=before)
    return examine(translation, proposal)


def told(opinion: Opinion) -> list[tuple[str, str, Basis]]:
    return [(one.problem.reason, one.problem.field, one.basis) for one in errors(opinion)]


def errors(opinion: Opinion) -> list[Finding]:
    return [one for one in opinion.findings if one.problem.severity is Severity.ERROR]


def limited(count: Any) -> Any:
    return [{"name": "limit-count", "config": {"count": count, "time_window": 60}}]


def test_a_route_with_nothing_wrong_has_no_findings() -> None:
    assert propose(route(rule(plugins=limited(1)))) == Opinion(outcome=Outcome.JUDGED)


@pytest.mark.parametrize(
    "manifest",
    [
        route(rule(plugins=limited(-1))),
        resource("ApisixPluginConfig", "route", {"plugins": limited(-1)}),
        resource("ApisixGlobalRule", "route", {"plugins": limited(-1)}),
    ],
    ids=lambda manifest: str(manifest["kind"]),
)
def test_a_wrong_plugin_is_told_in_the_words_of_the_status(manifest: Any) -> None:
    (finding,) = errors(propose(manifest))
    (problem,) = Translated(manifest).problems("route")
    assert finding.problem == problem
    assert finding.basis is Basis.OWN
    assert "limit-count" in problem.message
    assert problem.field.endswith("plugins[0].config.count")


def consumer(**fields: Any) -> Any:
    return resource("ApisixConsumer", "jack", {"authParameter": {"keyAuth": {"value": {"key": "k"}}}, **fields})


@pytest.mark.parametrize(
    ("good", "bad"),
    [
        (route(rule()), route(rule(plugins=limited(-1)))),
        (
            resource("ApisixPluginConfig", "shared", {"plugins": limited(1)}),
            resource("ApisixPluginConfig", "shared", {"plugins": limited(-1)}),
        ),
        (consumer(), consumer(plugins=limited(-1))),
    ],
    ids=lambda manifest: str(manifest["kind"]),
)
def test_a_wrong_plugin_is_told_of_new_objects_and_of_updates(good: Any, bad: Any) -> None:
    for before in (None, good):
        (finding,) = errors(propose(bad, before=before))
        assert (finding.basis, finding.is_new) == (Basis.OWN, True)
        assert "limit-count" in finding.problem.message
    assert errors(propose(good)) == []


def test_a_consumers_secret_that_is_not_there_yet_is_told_as_a_reference() -> None:
    jack = resource("ApisixConsumer", "jack", {"authParameter": {"keyAuth": {"secretRef": {"name": "none"}}}})
    field = "spec.authParameter.keyAuth.secretRef.name"
    assert told(propose(jack)) == [("SecretNotFound", field, Basis.REFERENCE)]


def test_what_is_not_there_yet_is_told_as_a_reference() -> None:
    spec = {"hosts": ["a.com"], "secret": {"name": "none"}}
    assert told(propose(resource("ApisixTls", "tls", spec))) == [
        ("SecretNotFound", "spec.secret.name", Basis.REFERENCE)
    ]
    missing = route(rule(backends=[{"serviceName": "none", "servicePort": 80}]))
    assert told(propose(missing)) == [("ServiceNotFound", "spec.http[0].backends[0].serviceName", Basis.REFERENCE)]


def test_a_path_that_another_route_has_is_told() -> None:
    (finding,) = errors(propose(route(rule("new", "/x"), name="new"), route(rule("old", "/x"), name="old", **OLD)))
    assert (finding.problem.reason, finding.problem.field) == ("PathConflict", "spec.http[0].match.paths[0]")


# Certificates


def tls(name: str, secret: str, **fields: Any) -> Any:
    metadata = fields.pop("metadata", {})
    return resource("ApisixTls", name, {"hosts": ["a.com"], "secret": {"name": secret}, **fields}, **metadata)


def secured(name: str, *secrets: str, created: str = NEW, **fields: Any) -> Any:
    made = ingress(name, host="a.com", created=created, **fields)
    made["spec"]["tls"] = [{"hosts": ["a.com"], "secretName": secret} for secret in secrets]
    return made


BOTH = (tls_secret("one", "a.com"), tls_secret("two", "a.com"))
DEFAULT = ingress_class("apisix", APISIX, annotations={"ingressclass.kubernetes.io/is-default-class": "true"})
ADOPTS = TranslationSettings(controller_names=frozenset({APISIX}))


@pytest.mark.parametrize(
    ("proposed", "present", "before"),
    [
        (tls("new", "two"), tls("old", "one", metadata=OLD), None),
        (secured("new", "two"), tls("old", "one", metadata=OLD), None),
        (secured("new", "one", "two"), service("other"), None),
        (secured("new", "two"), tls("old", "one", metadata=OLD), secured("new", "one")),
        (tls("new", "two"), secured("old", "one", created=OLD["creationTimestamp"]), None),
    ],
    ids=["of one kind", "of an Ingress", "of an Ingress in itself", "by an update", "of an ApisixTls"],
)
@pytest.mark.parametrize("settings", [DEFAULT_SETTINGS, ADOPTS], ids=["no class", "default class"])
def test_a_certificate_for_a_host_that_has_another_one_is_told(
    proposed: Any, present: Any, before: Any, settings: TranslationSettings
) -> None:
    classes = [DEFAULT] if settings is ADOPTS else []
    opinion = propose(proposed, present, *BOTH, *classes, before=before, settings=settings)
    found = [one.problem for one in opinion.findings if one.problem.reason != "PathConflict"]
    assert [(one.reason, one.severity) for one in found] == [("CertificateConflict", Severity.WARNING)]


@pytest.mark.parametrize("proposed", [tls("new", "one"), secured("new", "one")], ids=["ApisixTls", "Ingress"])
def test_the_same_certificate_for_a_host_is_no_conflict(proposed: Any) -> None:
    assert propose(proposed, tls("old", "one", metadata=OLD), *BOTH) == Opinion(outcome=Outcome.JUDGED)


@pytest.mark.parametrize("before", [None, tls("new", "one")], ids=["new", "update"])
def test_a_certificate_that_cannot_be_used_is_told(before: Any) -> None:
    broken = tls_secret("broken", "a.com", problem="the key does not belong to the certificate")
    (finding,) = errors(propose(tls("new", "broken"), broken, *BOTH, before=before))
    assert (finding.problem.reason, finding.problem.field) == ("InvalidCertificate", "spec.secret.name")
    assert "the key does not belong" in finding.problem.message


# Classes


@pytest.mark.parametrize(
    "kind", ["ApisixRoute", "ApisixUpstream", "ApisixTls", "ApisixConsumer", "ApisixPluginConfig", "ApisixGlobalRule"]
)
def test_an_object_may_be_given_to_another_class(kind: str) -> None:
    theirs = resource(kind, "one", {"ingressClassName": "theirs"})
    assert propose(theirs, before=resource(kind, "one", {"ingressClassName": "ours"})).findings == ()


def test_what_an_upstream_would_break_elsewhere_is_told() -> None:
    opinion = propose(resource("ApisixUpstream", "web", {"scheme": "udp"}), route(rule()))
    assert [(one.problem.reason, one.basis) for one in opinion.findings] == [("UnsupportedScheme", Basis.CONSEQUENCE)]


# v1alpha1

GATEWAY = {
    "apiVersion": "gateway.networking.k8s.io/v1",
    "kind": "Gateway",
    "metadata": {"name": "entrance", "namespace": "default"},
    "spec": {"gatewayClassName": "headgate"},
}


TCP_ROUTE = {"group": "gateway.networking.k8s.io", "kind": "TCPRoute", "name": "db"}


def gateway_consumer(*credentials: Any, **spec: Any) -> Any:
    written = {"gatewayRef": {"name": "entrance"}, "credentials": list(credentials), **spec}
    return resource("Consumer", "jack", written, "v1alpha1")


def test_a_consumer_whose_secret_is_not_there_is_warned_of_as_a_reference() -> None:
    by_secret = {"type": "key-auth", "secretRef": {"name": "none"}}
    expected = [("SecretNotFound", "spec.credentials[0].secretRef.name", Basis.REFERENCE)]
    assert told(propose(gateway_consumer(by_secret), GATEWAY)) == expected
    named = gateway_consumer({"type": "key-auth", "config": {"key": "k"}})
    assert told(propose(named)) == [("GatewayNotFound", "spec.gatewayRef.name", Basis.REFERENCE)]


@pytest.mark.parametrize(
    ("manifest", "field"),
    [
        (gateway_consumer({"type": "key-auth", "config": {}}), "spec.credentials[0].config.key"),
        (
            gateway_consumer({"type": "key-auth", "config": {"key": "k"}}, plugins=limited(-1)),
            "spec.plugins[0].config.count",
        ),
        (resource("PluginConfig", "shared", {"plugins": limited(-1)}, "v1alpha1"), "spec.plugins[0].config.count"),
        (
            resource("L4RoutePolicy", "policy", {"targetRefs": [TCP_ROUTE], "plugins": limited(1)}, "v1alpha1"),
            "spec.plugins[0].name",
        ),
    ],
)
def test_what_cannot_be_followed_of_v1alpha1_is_refused(manifest: Any, field: str) -> None:
    assert told(propose(manifest, GATEWAY))[0][1:] == (field, Basis.OWN)


def test_a_plugin_config_with_nothing_wrong_is_let_in_without_a_word() -> None:
    shared = resource("PluginConfig", "shared", {"plugins": limited(1)}, "v1alpha1")
    assert propose(shared) == Opinion(outcome=Outcome.JUDGED)


def test_a_gateway_proxy_is_told_of_a_service_that_is_not_there_and_of_a_wrong_provider() -> None:
    named = ingress_class("headgate")
    named["spec"]["parameters"] = {"apiGroup": "apisix.apache.org", "kind": "GatewayProxy", "name": "proxy"}
    missing = propose(resource("GatewayProxy", "proxy", {"publishService": "edge/none"}, "v1alpha1"), named)
    assert [(one.problem.severity, one.problem.reason, one.basis) for one in missing.findings] == [
        (Severity.WARNING, "ServiceNotFound", Basis.REFERENCE)
    ]
    wrong = resource("GatewayProxy", "proxy", {"provider": {"type": "Other"}}, "v1alpha1")
    assert told(propose(wrong, named)) == [("InvalidValue", "spec.provider.type", Basis.OWN)]


def policy(name: str = "new", **spec: Any) -> Any:
    refs = [{"group": "", "kind": "Service", "name": "web"}]
    return resource("BackendTrafficPolicy", name, {"targetRefs": refs, **spec}, "v1alpha1", **OLD)


def test_what_is_wrong_with_a_policy_is_told_at_its_field() -> None:
    wrong = policy(loadbalancer={"type": "roundrobin", "key": "uri"})
    assert told(propose(wrong)) == [("InvalidValue", "spec.loadbalancer.key", Basis.OWN)]


def test_a_target_that_another_policy_has_or_that_is_not_there_yet_is_told() -> None:
    assert told(propose(policy(), policy("a"))) == [("Conflicted", "spec.targetRefs[0]", Basis.REFERENCE)]
    gone = policy()
    gone["spec"]["targetRefs"][0]["name"] = "gone"
    assert told(propose(gone)) == [("TargetNotFound", "spec.targetRefs[0]", Basis.REFERENCE)]
    refs = [{"group": "gateway.networking.k8s.io", "kind": "HTTPRoute", "name": "web"}]
    on_route = resource("HTTPRoutePolicy", "new", {"targetRefs": refs}, "v1alpha1")
    assert told(propose(on_route)) == [("TargetNotFound", "spec.targetRefs[0]", Basis.REFERENCE)]
