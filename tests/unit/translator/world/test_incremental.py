"""Incremental translation equals translation from scratch, and runs no more than it must."""

import random
from collections import Counter
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fakes.translator.apisix import resource
from fakes.translator.deltas import (
    EPOCH,
    applied,
    decision,
    deleted,
    endpoint_slice,
    ingress,
    ingress_class,
    ref_of,
    service,
    service_export,
    tls_secret,
)
from fakes.translator.failing_dialect import counted, failing_on
from fakes.translator.translating import Follower, ListedLog
from headgate.common.clusters import Drain
from headgate.translator.composition import DIALECTS
from headgate.translator.translation import Translation

NAMES, HOSTS, PORTS = ("one", "two", "three"), ("", "a.example", "*.example"), (80, "http", 81)
ANNOTATIONS: tuple[dict[str, str], ...] = (
    {},
    {"kubernetes.io/ingress.class": "ours"},
    {"headgate.dev/match-methods": "GET"},
    {"headgate.dev/client-networks": "nowhere"},
    {"headgate.dev/min-tls-version": "1.3"},
    {"headgate.dev/max-tls-version": "1.2"},
    {"headgate.dev/host-sharing-namespaces": "a/default, b/default"},
    {"headgate.dev/priority": "3"},
    {"headgate.dev/canary": "true", "headgate.dev/canary-weight": "5"},
)
SERVICE_ANNOTATIONS: tuple[dict[str, str], ...] = (
    {},
    {"headgate.dev/load-balance": "random"},
    {"headgate.dev/global": "true"},
    {"headgate.dev/backend-tls-verify": "perhaps"},
    {"headgate.dev/stream-port": "5432"},
    {"headgate.dev/stream-port": "5433", "headgate.dev/stream-protocol": "tls-terminate"},
    {"headgate.dev/stream-port": "5433", "headgate.dev/stream-protocol": "udp"},
    {"headgate.dev/stream-protocol": "tls-passthrough", "headgate.dev/stream-server-names": "a.example"},
    {"headgate.dev/stream-protocol": "tls-passthrough", "headgate.dev/stream-server-names": "*.example"},
)
TIMES = ("2024-01-01T00:00:00Z", "2024-01-02T00:00:00Z")


@st.composite
def ingresses(draw: st.DrawFn) -> Any:
    made = ingress(
        draw(st.sampled_from(NAMES)),
        host=draw(st.sampled_from(HOSTS)),
        path=draw(st.sampled_from(("/", "/a", "wrong"))),
        service=draw(st.sampled_from(NAMES)),
        port=draw(st.sampled_from(PORTS)),
        created=draw(st.sampled_from(TIMES)),
        annotations=draw(st.sampled_from(ANNOTATIONS)),
    )
    spec = made["spec"]
    if draw(st.booleans()):
        spec["defaultBackend"] = {"service": {"name": draw(st.sampled_from(NAMES)), "port": {"number": 80}}}
    if draw(st.booleans()):
        hosts = draw(st.lists(st.sampled_from(HOSTS[1:]), unique=True))
        spec["tls"] = [{"hosts": hosts, "secretName": draw(st.sampled_from(NAMES))}]
    if draw(st.booleans()):
        made["apiVersion"] = draw(st.sampled_from(("networking.k8s.io/v1", "extensions/v1beta1")))
    return made


def annotated_service(name: str, external: dict[str, str], annotations: dict[str, str], created: str) -> Any:
    made = service(name, **external)
    made["metadata"] |= {"annotations": annotations, "creationTimestamp": created}
    return made


services = st.builds(
    annotated_service,
    st.sampled_from(NAMES),
    st.sampled_from(({}, {"type": "ExternalName", "externalName": "x.example"})),
    st.sampled_from(SERVICE_ANNOTATIONS),
    st.sampled_from(TIMES),
)
slices = st.builds(
    lambda name, address, number, ready: endpoint_slice(name, address, name=f"slice-{number}", ready=ready),
    st.sampled_from(NAMES),
    st.sampled_from(("10.0.0.1", "10.0.0.2")),
    st.integers(1, 2),
    st.booleans(),
)
secrets = st.builds(
    tls_secret,
    st.sampled_from(NAMES),
    st.sampled_from(HOSTS[1:]),
    problem=st.sampled_from((None, "cannot be used")),
    authorities_pem=st.sampled_from((None, "", "authorities")),
)
classes = st.builds(
    lambda controller, default: ingress_class(
        "ours", controller, annotations={"ingressclass.kubernetes.io/is-default-class": default}
    ),
    st.sampled_from(("headgate.dev/ingress-controller", "example.com/other")),
    st.sampled_from(("true", "false")),
)
exports = st.builds(service_export, st.sampled_from(NAMES))
decisions = st.builds(
    decision,
    st.sampled_from(("a", "b")),
    weight=st.sampled_from((None, 0, 3)),
    priority=st.integers(0, 1),
    gateways=st.sampled_from(((), ("http://192.0.2.1:80",))),
    drained=st.sampled_from((None, Drain(by="somebody", at=EPOCH))),
)


def policy(kind: str, name: str, target: str, created: str, spec: Any) -> Any:
    group, target_kind = ("", "Service") if kind == "BackendTrafficPolicy" else ("networking.k8s.io", "Ingress")
    refs = [{"group": group, "kind": target_kind, "name": target, **spec.get("target", {})}]
    spec = {key: value for key, value in spec.items() if key != "target"}
    return resource(kind, name, {"targetRefs": refs, **spec}, "v1alpha1", creationTimestamp=created)


policies = st.one_of(
    st.builds(
        policy,
        st.just("BackendTrafficPolicy"),
        st.sampled_from(NAMES),
        st.sampled_from(NAMES),
        st.sampled_from(TIMES),
        st.sampled_from(
            ({"passHost": "node"}, {"retries": 2}, {"target": {"sectionName": "http"}}, {"passHost": "rewrite"})
        ),
    ),
    st.builds(
        policy,
        st.just("HTTPRoutePolicy"),
        st.sampled_from(NAMES),
        st.sampled_from(NAMES),
        st.sampled_from(TIMES),
        st.sampled_from(({"priority": 1}, {"vars": [["arg_a", "==", "1"]]}, {"vars": [["nothing"]]})),
    ),
)
MANIFESTS = st.one_of(ingresses(), services, slices, secrets, classes, exports, decisions, policies)
STEPS = st.tuples(MANIFESTS, st.sampled_from(("a", "b")), st.sampled_from(("apply", "apply", "delete")), st.booleans())


def fresh(*clusters: str) -> Translation:
    translation = Translation(DIALECTS)
    for cluster in clusters:
        translation.activate(cluster)
    return translation


def settle(translation: Translation) -> None:
    for _ in translation.settle():
        pass


def image(translation: Translation) -> list[tuple[str, str, str]]:
    return [(chunk.kind, chunk.prefix, chunk.digest) for chunk in translation.assembly.image.chunks()]


def follow(log: ListedLog, follower: Follower, history: list[Any]) -> None:
    for manifest, cluster, operation, pauses in history:
        follower.take(log.append(applied(manifest, cluster) if operation == "apply" else deleted(manifest, cluster)))
        if pauses:
            follower.settle()
    follower.settle()


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(STEPS, max_size=40))
def test_whoever_begins_later_ends_where_the_first_one_is(history: list[Any]) -> None:
    log = ListedLog(history=40)
    first, later = Follower(log), Follower(log)
    follow(log, first, history)
    later.replay()
    assert later.image == first.image
    assert later.conditions == first.conditions


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(STEPS, max_size=60), st.integers(1, 4))
def test_so_it_does_when_the_good_versions_are_in_records_only(history: list[Any], kept: int) -> None:
    log = ListedLog(history=kept)
    first = Follower(log)
    for step in history:
        follow(log, first, [step])
        first.write_records()
    later = Follower(log)
    later.replay()
    assert later.image == first.image
    assert later.conditions == first.conditions
    assert not later.translation.world.tracker.unwritten


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(STEPS, max_size=40), st.randoms(use_true_random=False))
def test_objects_without_a_past_make_one_table_in_whatever_order_they_come(
    history: list[Any], shuffle: random.Random
) -> None:
    state = {(delta := applied(manifest, cluster)).ref: delta for manifest, cluster, *_ in history}
    followers = []
    for _ in range(2):
        log = ListedLog()
        followers.append(Follower(log))
        remaining = list(state.values())
        shuffle.shuffle(remaining)
        for delta in remaining:
            followers[-1].take(log.append(delta))
        followers[-1].settle()
    assert followers[0].image == followers[1].image
    assert followers[0].conditions == followers[1].conditions


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(STEPS, max_size=30), st.tuples(MANIFESTS, st.sampled_from(("a", "b"))))
def test_a_change_runs_only_what_asked_for_it(history: list[Any], last: tuple[Any, str]) -> None:
    translation = fresh("a", "b")
    for manifest, cluster, operation, _ in history:
        translation.apply(applied(manifest, cluster) if operation == "apply" else deleted(manifest, cluster))
    settle(translation)
    before = translation.graph.runs
    translation.apply(applied(*last))
    settle(translation)
    ran, kind = translation.graph.runs - before, last[0]["kind"]
    if kind in ("Service", "EndpointSlice"):
        # the upstreams of its ports in both clusters, itself, and the upstream of its stream port
        assert ran <= 2 * len(PORTS) + 2
    elif kind == "Ingress":
        policies = {manifest["metadata"]["name"] for manifest, *_ in history if manifest["kind"] == "HTTPRoutePolicy"}
        # itself, once more if it is wrong, its twin of the other group, what is asked of its class and of all hosts,
        # the upstreams and the certificate that it needs, and policies for it
        assert ran <= 3 + 4 + 4 + len(policies)


def test_an_endpoint_change_runs_one_node_and_changes_one_chunk() -> None:
    translation = fresh("a")
    for number in range(300):
        translation.apply(applied(ingress(f"i{number}", host=f"h{number}.example", service=f"s{number}")))
        translation.apply(applied(service(f"s{number}")))
        translation.apply(applied(endpoint_slice(f"s{number}", "10.0.0.1")))
    settle(translation)
    before, runs = image(translation), translation.graph.runs
    translation.assembly.changed.clear()
    translation.apply(applied(endpoint_slice("s7", "10.0.0.2")))
    settle(translation)
    assert translation.graph.runs - runs == 1
    assert [entry.key for entry in translation.assembly.changed] == ["a/default/s7:80"]
    assert len(set(image(translation)) - set(before)) == 1


def test_an_object_is_judged_by_its_translation_where_that_finds_no_error() -> None:
    translated: list[str] = []
    follower = Follower(ListedLog(), dialects=[counted(translated)])
    for manifest in (service("web"), ingress("fine"), ingress("alone", service="gone"), ingress("wrong", path="wrong")):
        follower.take(follower.log.append(applied(manifest)))
    follower.settle()
    # The wrong one also by itself, and once more for what that found.
    assert Counter(translated) == {"fine": 1, "alone": 1, "wrong": 3}
    del translated[:]
    follower.take(follower.log.append(applied(ingress("fine", path="/a"))))
    follower.settle()
    assert translated == ["fine", "fine"]


def test_the_first_version_is_judged_before_the_next_takes_its_place() -> None:
    log = ListedLog()
    follower = Follower(log)
    for path in ("wrong", "/good", "worse"):
        follower.take(log.append(applied(ingress("one", path=path))))
    follower.settle()
    (versions,) = [follower.translation.world.tracker.get(ref_of(ingress("one"), "a"))]
    assert versions is not None
    assert versions.good is not None
    assert versions.good.version.sequence == 2


def test_a_status_written_to_an_object_is_no_change() -> None:
    translation = fresh("a")
    web = ingress("web", host="a.example")
    translation.apply(applied(web))
    settle(translation)
    web["metadata"] |= {"resourceVersion": "7", "annotations": {"note": "x"}}
    assert not translation.apply(applied({**web, "status": {"loadBalancer": {"ingress": [{"ip": "192.0.2.1"}]}}}))
    assert translation.pending == 0


def test_a_service_that_appears_runs_its_upstream_but_no_ingress() -> None:
    translation = fresh("a")
    translation.apply(applied(ingress("web", host="a.example")))
    settle(translation)
    runs = translation.graph.runs
    translation.apply(applied(service()))
    settle(translation)
    assert translation.graph.runs - runs == 1


def test_a_class_that_changes_without_changing_its_owner_runs_no_ingress() -> None:
    translation = fresh("a")
    translation.apply(applied(ingress_class("ours")))
    for number in range(20):
        translation.apply(applied(ingress(f"i{number}", host=f"h{number}.example", class_name="ours")))
    settle(translation)
    runs = translation.graph.runs
    translation.apply(applied(ingress_class("ours", creationTimestamp="2024-01-01T00:00:00Z")))
    settle(translation)
    # whose it is, whether it is one of ingress-nginx, and what its GatewayProxy says
    assert translation.graph.runs - runs == 3


def test_the_last_user_of_an_upstream_takes_it_along() -> None:
    translation = fresh("a")
    one, two = ingress("one", host="a.example"), ingress("two", host="b.example")
    for manifest in (one, two, service()):
        translation.apply(applied(manifest))
    settle(translation)
    translation.apply(deleted(one))
    settle(translation)
    assert {kind for kind, *_ in image(translation)} == {"hosts", "upstreams"}
    translation.apply(deleted(two))
    settle(translation)
    assert image(translation) == []
    assert translation.apply(applied(endpoint_slice("web", "10.0.0.1")))
    assert translation.pending == 0


def test_a_cluster_that_is_not_active_contributes_nothing() -> None:
    translation = fresh("a")
    translation.apply(applied(ingress("web", host="b.example"), "b"))
    settle(translation)
    assert image(translation) == []
    translation.activate("b")
    settle(translation)
    assert len(image(translation)) == 2


def test_an_object_that_makes_us_fail_harms_only_itself(caplog: pytest.LogCaptureFixture) -> None:
    translation = Translation([failing_on("poison")])
    translation.activate("a")
    poison = ingress("poison", host="p.example")
    for manifest in (poison, ingress("web", host="a.example"), service()):
        translation.apply(applied(manifest))
    settle(translation)
    condition = translation.condition(ref_of(poison))
    assert condition is not None
    assert not condition.is_accepted
    assert [problem.reason for problem in condition.problems] == ["InternalError"]
    assert translation.assembly.fragments[ref_of(poison)].identity.uid == "uid-poison"
    assert sum(kind == "hosts" for kind, *_ in image(translation)) == 1
    assert "Traceback" in caplog.text


def test_a_service_that_makes_us_fail_is_an_upstream_that_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    from headgate.translator.upstreams import resolution as upstreams

    monkeypatch.setattr(upstreams, "targets", lambda *_: 1 / 0)
    translation = fresh("a")
    web = ingress("web", host="a.example")
    for manifest in (web, service()):
        translation.apply(applied(manifest))
    settle(translation)
    condition = translation.condition(ref_of(web))
    assert condition is not None
    assert [problem.reason for problem in condition.problems] == ["InternalError"]


def test_a_megabyte_of_annotations_is_ignored() -> None:
    translation = fresh("a")
    web = ingress("web", host="a.example", annotations={"notes": "x" * 1_000_000})
    translation.apply(applied(web))
    settle(translation)
    assert translation.condition(ref_of(web)) is not None
    assert len(translation.world.get(ref_of(web)).content) < 1000


@pytest.mark.parametrize(
    "asks_for", [{}, {"headgate.dev/client-networks": "10.0.0.0/8"}], ids=["equal", "more-conditions"]
)
def test_a_host_with_more_routes_than_fit_serves_the_oldest(
    asks_for: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from headgate.translator.assembly import conflicts

    monkeypatch.setattr(conflicts, "SURELY_FITTING", 2)
    monkeypatch.setattr(conflicts, "HOST_LIMIT", 900)
    translation = fresh("a")
    made = [
        ingress(
            f"i{day}",
            host="a.example",
            path=f"/{day}",
            created=f"2024-01-0{day}T00:00:00Z",
            annotations=asks_for if day > 3 else {},
        )
        for day in range(1, 6)
    ]
    for manifest in made:
        translation.apply(applied(manifest))
    settle(translation)
    found = [translation.condition(ref_of(manifest)) for manifest in made]
    accepted = [condition.is_accepted for condition in found if condition]
    assert accepted == sorted(accepted, reverse=True)
    assert 0 < sum(accepted) < 5
    assert found[-1] is not None
    assert found[-1].problems[0].reason == "HostTooLarge"
