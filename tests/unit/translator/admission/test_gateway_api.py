"""What is said of objects of Gateway API, and of Plugins, before they are let in.

Gateway API has mistakes told by conditions, so only what its definitions would not take either is an error.
"""

from typing import Any

import pytest

from fakes.translator.deltas import applied, endpoint_slice, ref_of, service
from fakes.translator.gateway_api import (
    extension,
    gateway,
    gateway_class,
    grpc_route,
    listener,
    plugins,
    prefix,
    route,
    stream_route,
    tls_policy,
    to,
    traffic_policy,
)
from headgate.common.admission import Opinion, Outcome, Proposal
from headgate.common.problems import Severity
from headgate.translator.admission.examine import examine
from headgate.translator.composition import DIALECTS
from headgate.translator.translation import Translation
from headgate.translator.world.settings import DEFAULT_SETTINGS

OLD, NEW = "2020-01-01T00:00:00Z", "2024-01-01T00:00:00Z"
OTHERS = (gateway_class(), gateway(), service("web"), endpoint_slice("web", "10.0.0.1"))


def propose(manifest: Any, *present: Any, others: Any = OTHERS) -> Opinion:
    translation = Translation(DIALECTS, DEFAULT_SETTINGS)
    translation.activate("a")
    for one in (*others, *present):
        translation.apply(applied(one))
    for _ in translation.settle():
        pass
    return examine(translation, Proposal(ref=ref_of(manifest), object=manifest))


def told(opinion: Opinion, severity: Severity) -> list[str]:
    return [one.problem.reason for one in opinion.findings if one.problem.severity is severity]


REDIRECT = {"type": "RequestRedirect", "requestRedirect": {"hostname": "a.example"}}
REWRITE = {"type": "URLRewrite", "urlRewrite": {"hostname": "b.example"}}
PATTERN = {"path": {"type": "RegularExpression", "value": "("}}


@pytest.mark.parametrize(
    ("manifest", "reason"),
    [
        (route(to("gone")), "BackendNotFound"),
        (route(to({"group": "a", "kind": "B", "name": "c"})), "InvalidKind"),
        (route(to("web", matches=[PATTERN])), "UnsupportedValue"),
        (route(to("web", filters=[REDIRECT, REWRITE])), "IncompatibleFilters"),
        (route(to("web", filters=[extension("gone")])), "FilterNotFound"),
        (route(to("web"), parents=[{"name": "gw", "sectionName": "gone"}]), "NoMatchingParent"),
        (grpc_route(to("gone")), "BackendNotFound"),
        (stream_route("TCPRoute", "web"), "NotAllowedByListeners"),
        (gateway(listener(protocol="SCTP"), name="new"), "UnsupportedProtocol"),
        (gateway(name="new", spec={"addresses": [{"value": "192.0.2.1"}]}), "UnsupportedAddress"),
        (gateway_class("new", parametersRef={"group": "a", "kind": "B", "name": "c"}), "InvalidParameters"),
        (tls_policy("new", wellKnownCACertificates=None), "Invalid"),
        (traffic_policy("new", "web", "gone"), "TargetNotFound"),
    ],
    ids=lambda one: one if isinstance(one, str) else "",
)
def test_what_gateway_api_tells_by_conditions_is_let_in_with_a_warning(manifest: Any, reason: str) -> None:
    opinion = propose(manifest, route(to("web"), name="other"))
    assert told(opinion, Severity.ERROR) == []
    assert reason in told(opinion, Severity.WARNING)


def test_a_path_that_another_route_has_is_let_in_with_a_warning() -> None:
    older = route(to("web"), name="older", hostnames=["a.example"], creationTimestamp=OLD)
    written = route(to("web", matches=[prefix("/")]), hostnames=["a.example"], creationTimestamp=NEW)
    opinion = propose(written, older)
    assert told(opinion, Severity.ERROR) == []
    assert told(opinion, Severity.WARNING) == ["PathConflict"]


@pytest.mark.parametrize(
    ("manifest", "reason"),
    [
        (route(to("web", matches=[{"path": {"type": "Like", "value": "/"}}])), "InvalidValue"),
        (route(to("web", filters=[{"extensionRef": {}}])), "Required"),
        (gateway(listener(port=70000), name="new"), "InvalidValue"),
        (traffic_policy("new", retryConstraint={"budget": {"percent": 101}}), "InvalidValue"),
    ],
    ids=lambda one: one if isinstance(one, str) else "",
)
def test_what_the_definitions_do_not_take_is_refused(manifest: Any, reason: str) -> None:
    assert reason in told(propose(manifest, route(to("web"), name="other")), Severity.ERROR)


def test_what_is_well_has_no_findings() -> None:
    assert propose(route(to("web"))) == Opinion(outcome=Outcome.JUDGED)
    assert propose(gateway(name="new")) == Opinion(outcome=Outcome.JUDGED)


def test_objects_of_other_controllers_are_not_judged() -> None:
    theirs = gateway(spec={"gatewayClassName": "theirs"})
    others = (gateway_class("theirs", "example.com/other"), theirs)
    assert propose(route(to("gone")), others=others).outcome is Outcome.FOREIGN
    assert propose(gateway_class("theirs", "example.com/other"), others=()).outcome is Outcome.FOREIGN


def test_a_wrong_plugin_is_refused_and_what_routes_would_lack_is_told() -> None:
    wrong = plugins("named", ("limit-count", {"count": -1}))
    opinion = propose(wrong, plugins("named", ("cors", {})), route(to("web", filters=[extension("named")])))
    assert told(opinion, Severity.ERROR) == ["InvalidPlugin"]
