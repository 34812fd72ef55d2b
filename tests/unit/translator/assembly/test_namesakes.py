"""The same Ingress in several clusters is no conflict: one is served, and the others say so quietly."""

from typing import Any

import pytest

from fakes.translator.deltas import applied, endpoint_slice, ingress, service, tls_secret
from headgate.common.admission import Proposal
from headgate.common.problems import Severity
from headgate.common.snapshot import Version
from headgate.common.status import StatusUpdate
from headgate.translator.admission.examine import examine
from headgate.translator.assembly.conditions import ObjectStatus
from headgate.translator.composition import DIALECTS
from headgate.translator.serving.fleet import Fleet
from headgate.translator.status.desired import DesiredStatus, Facts, has_news, report, to_update
from headgate.translator.translation import Translation

OLD, NEW = "2024-01-01T00:00:00Z", "2025-01-01T00:00:00Z"


def web(created: str, **changes: Any) -> Any:
    return ingress("web", host="shop.example", created=created, **changes)


def exported(name: str = "web", **annotations: str) -> Any:
    made = service(name)
    made["metadata"]["annotations"] = {"headgate.dev/global": "true", **annotations}
    return made


def translate(**clusters: list[Any]) -> Translation:
    translation = Translation(DIALECTS)
    for cluster, manifests in clusters.items():
        for manifest in (exported(), *manifests, endpoint_slice("web", "10.0.0.1")):
            translation.apply(applied(manifest, cluster))
        translation.activate(cluster)
    for _ in translation.settle():
        pass
    return translation


def condition(translation: Translation, cluster: str, manifest: Any = None) -> ObjectStatus:
    found = translation.condition(applied(manifest or web(OLD), cluster).ref)
    assert found is not None
    return found


def test_a_namesake_is_accepted_and_its_paths_are_said_to_be_served_elsewhere() -> None:
    translation = translate(east=[web(OLD)], west=[web(NEW)])
    assert condition(translation, "east").problems == ()
    found = condition(translation, "west")
    assert found.is_accepted
    [note] = found.problems
    assert (note.severity, note.reason) == (Severity.INFO, "ServedByNamesake")
    owner = "Ingress default/web in cluster east, which is older"
    assert note.message == f"prefix path / of host shop.example is served by its namesake {owner}"


def test_a_namesake_whose_services_are_its_own_alone_has_lost_what_it_claims() -> None:
    translation = translate(east=[web(OLD)], west=[web(NEW), service()])
    assert "HostNotOwned" in [problem.reason for problem in condition(translation, "west").problems]


@pytest.mark.parametrize("changes", [{"service": "other"}, {"annotations": {"headgate.dev/read-timeout": "5s"}}])
def test_a_namesake_that_wants_something_else_has_lost_it(changes: Any) -> None:
    translation = translate(east=[web(OLD)], west=[web(NEW, **changes)])
    reason = "HostNotOwned" if "service" in changes else "PathConflict"
    reasons = [(problem.severity, problem.reason) for problem in condition(translation, "west").problems]
    assert (Severity.ERROR, reason) in reasons


def test_another_object_of_the_same_cluster_has_lost_what_it_claims() -> None:
    other = ingress("other", host="shop.example", created=NEW)
    assert not condition(translate(east=[web(OLD), other]), "east", other).is_accepted


def test_the_certificate_of_a_namesake_is_no_conflict() -> None:
    def secured(created: str) -> Any:
        made = web(created)
        made["spec"]["tls"] = [{"hosts": ["shop.example"], "secretName": "tls"}]
        return made

    translation = translate(
        east=[secured(OLD), tls_secret("tls", "shop.example")], west=[secured(NEW), tls_secret("tls", "shop.example")]
    )
    assert {problem.severity for problem in condition(translation, "west").problems} == {Severity.INFO}


def test_the_stream_port_of_a_namesake_is_no_conflict() -> None:
    made = exported("db", **{"headgate.dev/stream-port": "5432"})
    translation = translate(east=[made], west=[made])
    found = condition(translation, "west", made)
    assert found.is_accepted
    assert "ServedByNamesake" in [problem.reason for problem in found.problems]
    assert "StreamConflict" not in [problem.reason for problem in found.problems]


def told(translation: Translation, cluster: str) -> tuple[DesiredStatus, StatusUpdate]:
    ref = applied(web(OLD), cluster).ref
    fragment = translation.assembly.fragments[ref]
    facts = Facts(fragment.identity, condition(translation, cluster), None, "c", Version(1, 1), None)
    wanted = report(facts, (), Fleet(), None)
    return wanted, to_update(wanted, None, applied(web(OLD)).observed_at, None)


def test_its_status_says_so_and_no_warning_is_written() -> None:
    wanted, update = told(translate(east=[web(OLD)], west=[web(NEW)]), "west")
    assert (update.conditions[0].status, update.conditions[0].reason) == ("True", "ServedByNamesake")
    assert [note.type for note in update.events] == ["Normal"]
    assert not has_news(wanted, None)
    assert update.last_error is None


def test_nobody_is_held_back_or_warned_who_applies_an_object_to_another_cluster() -> None:
    translation = translate(east=[web(NEW)], west=[])
    for created in (OLD, "2026-01-01T00:00:00Z"):
        manifest = web(created)
        proposal = Proposal(ref=applied(manifest, "west").ref, object=manifest)
        assert examine(translation, proposal).findings == ()
