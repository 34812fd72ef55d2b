"""What is said of resources of Apache APISIX before they are let in: the same as in their status and by the command."""

from typing import Any

import pytest

from fakes.apisix import Translated, resource, route, rule
from fakes.deltas import applied, endpoint_slice, ref_of, service, tls_secret
from headgate.common.admission import Basis, Finding, Opinion, Outcome, Proposal
from headgate.common.problems import Severity
from headgate.translator.admission.examine import examine
from headgate.translator.offline import make_dialects
from headgate.translator.translation import Translation

OLD = {"creationTimestamp": "2020-01-01T00:00:00Z"}


def propose(manifest: Any, *present: Any) -> Opinion:
    translation = Translation(make_dialects())
    translation.activate("a")
    for one in (service("web"), endpoint_slice("web", "10.0.0.1"), *present):
        translation.apply(applied(one))
    for _ in translation.settle():
        pass
    return examine(translation, Proposal(ref=ref_of(manifest), object=manifest, is_update=False))


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


def test_a_certificate_for_a_host_that_has_another_one_is_told() -> None:
    def tls(name: str, **metadata: Any) -> Any:
        return resource("ApisixTls", name, {"hosts": ["a.com"], "secret": {"name": name}}, **metadata)

    opinion = propose(tls("new"), tls("old", **OLD), tls_secret("old", "a.com"), tls_secret("new", "a.com"))
    assert [one.problem.reason for one in opinion.findings] == ["CertificateConflict"]


def test_what_an_upstream_would_break_elsewhere_is_told() -> None:
    opinion = propose(resource("ApisixUpstream", "web", {"scheme": "udp"}), route(rule()))
    assert [(one.problem.reason, one.basis) for one in opinion.findings] == [("UnsupportedScheme", Basis.CONSEQUENCE)]
