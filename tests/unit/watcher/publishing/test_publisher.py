"""From a source to the log, on a log in memory."""

import logging
from contextlib import AbstractAsyncContextManager
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from fakes.gateway.tls import SelfSigned
from fakes.kubernetes.published_deltas import delta, logged, ref
from fakes.translator.publishing import ObservedLog, Publishing, publishing, read_log, service
from fakes.waiting import until, until_still
from headgate.common.clusters import ClusterSettings, Decision
from headgate.common.deltas import Author, ClusterAnnouncement, Delta, Operation, SyncMarker, SyncState
from headgate.common.resources import INGRESS, NAMESPACE, SECRET, SERVICE, JsonObject, ObjectRef
from headgate.common.service.telemetry import TRACEPARENT
from headgate.watcher.objects.secrets import throwaway_recipients
from headgate.watcher.publishing import publisher as publisher_module
from headgate.watcher.sources import Listed, Unavailable


async def test_a_cluster_is_announced_before_anything_else() -> None:
    async with publishing() as one:
        one.source.list()
        await one.until_ready()
        first, *markers = one.log.said
        assert isinstance(first, ClusterAnnouncement)
        assert [kind.resource for kind in first.kinds] == ["services", "ingresses", "secrets"]
        assert {marker.kind.resource for marker in markers if isinstance(marker, SyncMarker)} == {
            "services",
            "ingresses",
            "secrets",
        }


async def test_a_marker_follows_everything_that_was_listed_with_it() -> None:
    async with publishing() as one:
        one.source.list(*(service(f"s{n}", "1") for n in range(40)))
        await one.until_ready()
        messages = await read_log(one.log)
        marker = next(n for n, m in enumerate(messages) if isinstance(m, SyncMarker) and m.kind.resource == "services")
        assert sum(isinstance(message, Delta) for message in messages[:marker]) == 40
        assert one.log.batches == [40]


async def test_readiness_names_the_kinds_that_are_missing() -> None:
    async with publishing() as one:
        one.source.say(Listed(SERVICE, ()), Listed(INGRESS, ()))
        await until(lambda: one.publisher.readiness() == "not published yet: secrets")


async def test_what_people_decided_of_a_cluster_is_not_for_its_watcher_to_take_back() -> None:
    log = ObservedLog()
    decided = Decision.make(ClusterSettings(weight=3), "ada", datetime.now(UTC)).as_delta("a")
    sequence = await log.append(decided, 0)
    async with publishing(log) as one:
        one.source.list(service("x", "1"))
        await one.until_ready()
        one.publisher.compare_with_log()  # as after a reconnection
        one.source.apply(service("more", "1"))
        await until(lambda: log.shown()[-1] == "apply more 1")
    [logged] = [state for ref, state in (await log.read_state("a")).items() if ref == decided.ref]
    assert (logged.is_deleted, logged.sequence) == (False, sequence)


def cluster(uid: str) -> Listed:
    """The namespaces of a cluster, by which it is known."""
    return Listed(
        NAMESPACE, [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "kube-system", "uid": uid}}]
    )


def named_alike(log: ObservedLog) -> AbstractAsyncContextManager[Publishing]:
    return publishing(log, log_reader=log, kinds=(NAMESPACE, SERVICE))


async def test_another_cluster_of_the_same_name_takes_nothing_from_the_one_that_has_it(
    caplog: pytest.LogCaptureFixture,
) -> None:
    log = ObservedLog()
    async with named_alike(log) as one:
        one.source.say(cluster("one"), Listed(SERVICE, (service("x", "1"),)))
        await one.until_ready()
        async with named_alike(log) as other:
            other.source.say(Listed(SERVICE, (service("y", "1"),)))
            other.source.say(cluster("other"))
            await until(lambda: any("another one there" in getattr(each, "reason", "") for each in caplog.records))
        assert other.publisher.readiness() is not None
    assert await logged(log) == {"kube-system": ("", False), "x": ("1", False)}


async def test_namespaces_that_cannot_be_listed_hold_nothing_back_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    log = ObservedLog()
    async with named_alike(log) as one:
        one.source.say(cluster("one"), Listed(SERVICE, ()))
        await one.until_ready()
    async with named_alike(log) as again:
        again.source.say(Listed(SERVICE, (service("x", "1"),)))
        await until(lambda: again.publisher.ledger.wanted(ref("x")))
        await until_still(log.shown, 0.05)
        assert log.shown() == ["apply kube-system "]
        monkeypatch.setattr(publisher_module, "UNSURE", timedelta())
        again.source.apply(service("y", "1"))
        await until(lambda: log.shown()[1:] == ["apply x 1", "apply y 1"])


async def test_a_cluster_that_was_made_anew_takes_its_name_when_nobody_else_has_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    log = ObservedLog()
    async with named_alike(log) as one:
        one.source.say(cluster("one"), Listed(SERVICE, (service("x", "1"),)))
        await one.until_ready()
    monkeypatch.setattr(publisher_module, "SILENT_AFTER", timedelta())
    async with named_alike(log) as anew:
        anew.source.say(cluster("anew"), Listed(SERVICE, (service("y", "1"),)))
        await anew.until_ready()
    assert await logged(log) == {"kube-system": ("", False), "x": ("1", True), "y": ("1", False)}


def last_marker(log: ObservedLog) -> SyncMarker:
    return [one for one in log.said if isinstance(one, SyncMarker) and one.kind.resource == "services"][-1]


async def test_the_marker_of_a_kind_says_which_objects_are_not_published_until_they_are() -> None:
    async with publishing() as one:
        one.source.list(service("big", "1", note="x" * 2_000_000))
        await one.until_ready()
        assert last_marker(one.log).state is SyncState.SYNCED
        assert last_marker(one.log).message.startswith("not published: default/big: ")
        one.source.apply(service("big", "2"))
        await until(lambda: last_marker(one.log).message == "")


async def test_an_object_that_grows_too_large_is_marked_at_once() -> None:
    async with publishing() as one:
        one.source.list(service("web", "1"))
        await one.until_ready()
        assert last_marker(one.log).message == ""
        one.source.apply(service("web", "2", note="x" * 2_000_000))
        await until(lambda: "default/web" in last_marker(one.log).message)


async def test_a_refused_object_that_a_list_has_no_more_is_not_complained_about() -> None:
    async with publishing() as one:
        one.source.list(service("big", "1", note="x" * 2_000_000))
        await one.until_ready()
        one.source.list()
        await until(lambda: last_marker(one.log).message == "")
        assert one.publisher.refused == ()


async def test_only_the_difference_of_a_list_is_published() -> None:
    log = ObservedLog()
    for name, version in (("same", "1"), ("changed", "1"), ("gone", "1")):
        await log.append(delta(name, version))
    await log.append(delta("gone-before", "1", Operation.DELETE))
    log.appended.clear()
    async with publishing(log) as one:
        one.source.list(service("same", "1"), service("changed", "2"), service("new", "3"))
        await one.until_ready()
        assert sorted(log.shown()) == ["apply changed 2", "apply new 3", "delete gone 1"]


async def test_a_restart_after_only_statuses_have_changed_publishes_nothing() -> None:
    log = ObservedLog()
    ingress: dict[str, Any] = {**service("i", "1"), "kind": "Ingress", "apiVersion": "networking.k8s.io/v1"}
    later = {**ingress, "metadata": {**ingress["metadata"], "resourceVersion": "2"}, "status": {"loadBalancer": {}}}
    for manifest in (ingress, later):
        async with publishing(log) as one:
            one.source.say(Listed(SERVICE, ()), Listed(SECRET, ()), Listed(INGRESS, (manifest,)))
            await one.until_ready()
    assert log.shown() == ["apply i 1"]


async def test_no_digest_of_a_secret_goes_to_the_log() -> None:
    secret = SelfSigned("a.example").secret("default", "tls")
    secret["metadata"] |= {"uid": "u", "resourceVersion": "7"}
    async with publishing() as one:
        one.source.apply(secret, SECRET)
        one.source.apply(service("x", "1"))
        await until(lambda: len(one.log.appended) == 2)
        digests = {delta.ref.resource: delta.digest for delta in one.log.appended}
    assert digests["secrets"] == ""
    assert digests["services"] != ""


async def test_a_second_list_publishes_its_difference() -> None:
    async with publishing() as one:
        one.source.list(service("x", "1"), service("z", "1"))
        await one.until_ready()
        one.source.list(service("x", "2", port=81))
        await until(lambda: len(one.log.appended) == 4)
        assert one.log.shown()[2:] in (["apply x 2", "delete z 1"], ["delete z 1", "apply x 2"])


async def test_kinds_that_are_not_read_any_more_are_forgotten() -> None:
    log = ObservedLog()
    old = delta("x", "1").model_copy(update={"ref": ObjectRef("a", "example.com", "things", "", "x")})
    await log.append(old)
    async with publishing(log) as one:
        one.source.list()
        await one.until_ready()
        assert log.shown()[1:] == ["delete x 1"]


async def test_objects_of_other_clusters_are_left_alone() -> None:
    log = ObservedLog()
    await log.append(delta("x", "1").model_copy(update={"ref": ref("x")._replace(cluster="b")}))
    async with publishing(log) as one:
        one.source.list()
        await one.until_ready()
        assert len(log.appended) == 1


async def test_nothing_is_deleted_before_its_kind_was_listed() -> None:
    log = ObservedLog()
    await log.append(delta("x", "1"))
    async with publishing(log) as one:
        one.source.apply(service("z", "1"))
        await one.until_shown("apply x 1", "apply z 1")
        one.publisher.compare_with_log()
        one.source.apply(service("w", "1"))
        await one.until_shown("apply x 1", "apply z 1", "apply w 1")


async def test_changes_are_published_in_order() -> None:
    async with publishing() as one:
        one.source.list()
        await one.until_ready()
        one.source.apply(service("x", "1"))
        await one.until_shown("apply x 1")
        one.source.apply(service("x", "2", port=81))
        await one.until_shown("apply x 1", "apply x 2")
        one.source.delete(service("x", "3", port=81))
        await one.until_shown("apply x 1", "apply x 2", "delete x 3")


async def test_the_same_object_twice_is_published_once() -> None:
    async with publishing() as one:
        one.source.list(service("x", "1"))
        one.source.apply(service("x", "1"))
        one.source.apply(service("x", "1"))
        await one.until_ready()
        await one.settle()
        assert one.log.shown() == ["apply x 1"]


async def test_a_change_of_status_or_bookkeeping_alone_is_not_published() -> None:
    async with publishing() as one:
        ingress: dict[str, Any] = {**service("i", "1"), "kind": "Ingress", "apiVersion": "networking.k8s.io/v1"}
        one.source.list()
        one.source.apply(ingress, INGRESS)
        one.source.apply({**ingress, "status": {"loadBalancer": {"ingress": []}}}, INGRESS)
        metadata = {**ingress["metadata"], "resourceVersion": "2", "managedFields": [{"time": "now"}]}
        one.source.apply({**ingress, "metadata": metadata}, INGRESS)
        await one.settle()
        assert one.log.shown() == ["apply i 1"]


async def test_an_object_that_returns_to_what_it_was_is_published_again() -> None:
    async with publishing(origin="manifests") as one:
        for version, port in (("h1", 80), ("h2", 81), ("h1", 80)):
            one.source.apply(service("x", version, port))
            await until(lambda v=version: bool(one.log.shown()) and one.log.shown()[-1] == f"apply x {v}")  # type: ignore[misc]
        one.source.delete(service("x", "h1"))
        one.source.apply(service("x", "h1"))
        await one.settle()
        assert (await logged(one.log))["x"] == ("h1", False)


async def test_the_deletion_of_a_replaced_namesake_is_no_news() -> None:
    async with publishing() as one:
        one.source.list()
        one.source.apply(service("x", "5", uid="new"))
        one.source.delete(service("x", "4", uid="old"))
        await one.settle()
        assert one.log.shown() == ["apply x 5"]


async def test_content_is_stripped() -> None:
    async with publishing() as one:
        one.source.apply(service("x", "1", managedFields=[{}]))
        await one.until_shown("apply x 1")
        assert one.log.appended[0].object == service("x", "1")


async def test_secrets_are_sealed_and_others_are_not_published(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    pair = SelfSigned("a.example")
    secret = pair.secret("default", "tls")
    secret["metadata"] |= {"uid": "u", "resourceVersion": "7"}
    foreign = {**secret, "type": "kubernetes.io/dockercfg", "metadata": {**secret["metadata"], "name": "other"}}
    async with publishing() as one:
        one.source.list()
        one.source.apply(secret, SECRET)
        one.source.apply(foreign, SECRET)
        await one.settle()
        (published,) = one.log.appended
        assert published.object is not None
        assert published.object["sealed"]["certificate"]["names"] == ["a.example"]
        assert published.resource_version.startswith("7-")
        everything = published.model_dump_json() + caplog.text
        assert secret["data"]["tls.key"] not in everything
        assert pair.key_pem.decode()[40:80] not in everything


async def test_a_secret_that_stops_holding_a_certificate_is_gone() -> None:
    secret = SelfSigned("a.example").secret("default", "tls")
    secret["metadata"] |= {"uid": "u", "resourceVersion": "7"}
    async with publishing() as one:
        one.source.apply(secret, SECRET)
        await until(lambda: len(one.log.appended) == 1)
        one.source.apply({**secret, "type": "kubernetes.io/dockercfg"}, SECRET)
        await until(lambda: len(one.log.appended) == 2)
        assert one.log.appended[1].operation is Operation.DELETE


async def test_new_recipients_get_the_secrets_sealed_again() -> None:
    secret = SelfSigned("a.example").secret("default", "tls")
    secret["metadata"] |= {"uid": "u", "resourceVersion": "7"}
    log, same = ObservedLog(), throwaway_recipients()
    for recipients, count in ((same, 1), (same, 1), (throwaway_recipients(), 2)):
        async with publishing(log, recipients=recipients) as one:
            one.source.say(Listed(SERVICE, ()), Listed(INGRESS, ()), Listed(SECRET, (secret,)))
            await one.until_ready()
            assert len(log.appended) == count


async def test_a_secret_without_recipients_is_refused_and_harms_nobody() -> None:
    secret = SelfSigned("a.example").secret("default", "tls")
    async with publishing(recipients=()) as one:
        one.source.apply(secret, SECRET)
        one.source.apply(service("x", "1"))
        await one.until_shown("apply x 1")
        ((name, problem),) = one.publisher.refused
        assert (name.name, problem.reason) == ("tls", "NotSealed")


def nested(levels: int) -> JsonObject:
    """A field so deep."""
    found: object = []
    for _ in range(levels):
        found = [found]
    return {"a": found}


@pytest.mark.parametrize(
    ("reason", "more"),
    [("TooLarge", {"spec": {"a": "b" * 1_100_000}}), ("TooDeep", {"spec": nested(9000)})],
    ids=["too-large", "too-deep"],
)
async def test_an_object_beyond_a_bound_is_refused_and_keeps_what_was_published(reason: str, more: JsonObject) -> None:
    async with publishing() as one:
        one.source.list(service("x", "1"))
        await one.until_ready()
        one.source.list(service("x", "2") | more)
        one.source.apply(service("z", "1"))
        await one.until_shown("apply x 1", "apply z 1")
        assert [problem.reason for _, problem in one.publisher.refused] == [reason]
        one.source.apply(service("x", "3"))
        await one.settle()
        assert one.publisher.refused == ()


async def test_an_absent_kind_is_marked_and_its_objects_are_gone() -> None:
    log = ObservedLog()
    await log.append(delta("x", "1"))
    async with publishing(log) as one:
        one.source.list()
        one.source.say(Unavailable(SERVICE, SyncState.ABSENT, "no such kind"))
        await until(lambda: any(isinstance(s, SyncMarker) and s.state is SyncState.ABSENT for s in log.said))
        assert (await logged(log))["x"] == ("1", True)


async def test_a_forbidden_kind_is_marked_and_keeps_its_objects() -> None:
    log = ObservedLog()
    await log.append(delta("x", "1"))
    async with publishing(log) as one:
        one.source.say(Unavailable(SERVICE, SyncState.FORBIDDEN, "no"), Listed(INGRESS, ()), Listed(SECRET, ()))
        await one.until_ready()
        (marker,) = [s for s in log.said if isinstance(s, SyncMarker) and s.kind.resource == "services"]
        assert (marker.state, marker.message) == (SyncState.FORBIDDEN, "no")
        assert (await logged(log))["x"] == ("1", False)


async def test_a_change_carries_its_trace_on() -> None:
    trace = "0af7651916cd43dd8448eb211c80319c"
    async with publishing() as one:
        one.source.apply(service("x", "1"), traceparent=f"00-{trace}-b7ad6b7169203331-01")
        one.source.apply(service("z", "1"))
        await until(lambda: len(one.log.appended) == 2)
        of = {delta.ref.name: delta.traceparent or "" for delta in one.log.appended}
        assert of["x"].split("-")[1] == trace
        assert of["x"].split("-")[2] != "b7ad6b7169203331"
        assert of["z"].split("-")[1] not in ("", trace)
    assert TRACEPARENT


async def test_a_list_is_one_span() -> None:
    async with publishing() as one:
        one.source.list(*(service(f"s{n}", "1") for n in range(20)))
        await one.until_ready()
        assert len({delta.traceparent for delta in one.log.appended}) == 1
        assert one.log.appended[0].traceparent


async def test_a_change_names_its_author_and_a_deletion_none() -> None:
    async with publishing() as one:
        managed = service("x", "1", managedFields=[{"manager": "kubectl-edit", "time": "2026-01-01T10:00:00Z"}])
        one.source.apply(managed)
        await one.until_shown("apply x 1")
        one.source.delete(managed)
        await one.until_shown("apply x 1", "delete x 1")
        applied, deleted = one.log.appended
        assert applied.author == Author("kubectl-edit", datetime(2026, 1, 1, 10, tzinfo=UTC))
        assert deleted.author is None
