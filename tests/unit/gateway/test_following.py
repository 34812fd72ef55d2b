"""What a gateway does with what the store says, and when the store says nothing."""

import asyncio
import io
import json
import logging

import pytest
from nacl.public import PrivateKey

from fakes.gateway.following import KEY, Gateway, Shakable, commit, small_image
from fakes.gateway.requests import PLAIN
from fakes.gateway.table import certificate, endpoint, host, publish, route, upstream
from fakes.stores.chunks import StoredChunks
from fakes.translator.rolled_out import rolled_out
from fakes.translator.sealing import seal
from fakes.waiting import until
from headgate.common.service.logs import JsonFormatter
from headgate.common.snapshot import SCHEMA, Manifest, Version
from headgate.common.table_image import TableImage

BOUND_S = 5.0


async def test_a_chosen_replica_serves_the_next_table_and_the_others_what_all_served() -> None:
    store = Shakable()
    manifest, chunks = rolled_out(small_image(1), small_image(2), "g1")
    await store.put_chunks(chunks)
    await store.commit(manifest, None)
    for replica, reached, routes in (("g1", "10.0.0.2:80", (1, 2)), ("g2", "10.0.0.1:80", (1, 1))):
        gateway = Gateway(store, replica)
        async with gateway.following():
            await until(lambda gateway=gateway: gateway.served() == "1.2")  # type: ignore[misc]
            assert (gateway.reaches(), gateway.applier.routes) == (reached, routes)
            stored = gateway.applier.stored_table()
            assert stored is not None
            assert stored.served == manifest.served_by(replica)


async def test_a_table_that_cannot_be_applied_is_told_of_until_another_one_is() -> None:
    store = Shakable()
    gateway = Gateway(store)
    await commit(store, small_image(), (1, 1))
    async with gateway.following():
        await until(lambda: gateway.served() == "1.1")
        manifest, chunks = publish(small_image(2), (1, 2))
        await store.put_chunks(chunks)
        store.damage(next(chunk.digest for chunk in chunks if chunk.kind == "upstreams"))
        await store.commit(manifest, await store.read_pointer("default"))
        await until(lambda: gateway.follower.refusal is not None)
        assert gateway.follower.refusal is not None
        assert gateway.follower.refusal.version == (1, 2)
        assert gateway.served() == "1.1"
        await commit(store, small_image(3), (1, 3))
        await until(lambda: gateway.served() == "1.3" and gateway.follower.refusal is None)


async def test_every_revision_is_served_and_only_new_chunks_are_fetched() -> None:
    store, image = Shakable(), small_image()
    gateway = Gateway(store)
    await commit(store, image, (1, 1))
    async with gateway.following():
        await until(lambda: gateway.served() == "1.1")
        assert gateway.reaches() == "10.0.0.1:80"
        store.fetched.clear()
        image.put(upstream("up", endpoint(2)))
        await commit(store, image, (1, 2))
        await until(lambda: gateway.served() == "1.2")
    assert gateway.reaches() == "10.0.0.2:80"
    assert [name.kind for name in store.fetched] == ["upstreams"]


async def test_the_line_about_an_applied_table_has_the_trace_of_the_change() -> None:
    gateway, lines, handler = Gateway(Shakable()), io.StringIO(), logging.StreamHandler()
    handler.setStream(lines)
    handler.setFormatter(JsonFormatter("gateway"))
    log = logging.getLogger("headgate.gateway.following.apply")
    before = log.level
    log.addHandler(handler)
    log.setLevel(logging.INFO)
    manifest, chunks = publish(small_image(), (1, 1))
    try:
        traced = manifest.model_copy(update={"traceparent": f"00-{'a' * 32}-{'b' * 16}-01"})
        await gateway.applier.apply(traced, StoredChunks(chunks).get_chunks)
    finally:
        log.removeHandler(handler)
        log.setLevel(before)
    assert [json.loads(line)["trace_id"] for line in lines.getvalue().splitlines()] == ["a" * 32]


async def test_a_requests_route_outlives_the_swap() -> None:
    store, image = Shakable(), small_image()
    gateway = Gateway(store)
    await commit(store, image, (1, 1))
    async with gateway.following():
        await until(lambda: gateway.served() == "1.1")
        assert gateway.holder.router is not None
        held = gateway.holder.router.match(b"foo.com", b"/", PLAIN)
        assert held is not None
        image.discard("hosts", "foo.com")
        await commit(store, image, (1, 2))
        await until(lambda: gateway.served() == "1.2")
    assert held.name == "foo.com|prefix /"
    assert held.choose((), PLAIN) is not None


async def test_a_store_that_went_back_is_not_followed(caplog: pytest.LogCaptureFixture) -> None:
    store = Shakable()
    gateway = Gateway(store)
    await commit(store, small_image(1), (1, 5))
    async with gateway.following():
        await until(lambda: gateway.served() == "1.5")
        store.lose()
        await commit(store, small_image(2), (1, 2))
        await until(lambda: "store is behind" in caplog.text)
        assert gateway.told_behind == 1
        assert gateway.reaches() == "10.0.0.1:80"
        assert gateway.metric("headgate_table_in_sync") == 0
        await commit(store, small_image(3), (2, 1))
        await until(lambda: gateway.served() == "2.1")
    assert gateway.reaches() == "10.0.0.3:80"


async def test_a_damaged_chunk_is_refused_and_the_next_revision_applied(caplog: pytest.LogCaptureFixture) -> None:
    store, image = Shakable(), small_image()
    gateway = Gateway(store)
    await commit(store, image, (1, 1))
    async with gateway.following():
        await until(lambda: gateway.served() == "1.1")
        image.put(upstream("up", endpoint(2)))
        manifest, chunks = publish(image, (1, 2))
        await store.put_chunks(chunks)
        store.damage(next(chunk.digest for chunk in chunks if chunk.kind == "upstreams"))
        await store.commit(manifest, await store.read_pointer("default"))
        await until(lambda: (gateway.metric("headgate_table_refusals_total") or 0) >= 2)
        assert gateway.served() == "1.1"
        assert "the last good table stays" in caplog.text
        assert (before := gateway.metric("headgate_table_behind_seconds") or 0) > 0
        image.put(upstream("up", endpoint(3)))
        manifest, chunks = publish(image, (1, 3))
        await store.put_chunks(chunks)
        store.damage(next(chunk.digest for chunk in chunks if chunk.kind == "upstreams"))
        await store.commit(manifest, await store.read_pointer("default"))
        await until(lambda: (gateway.metric("headgate_table_refusals_total") or 0) >= 6)
        assert (gateway.metric("headgate_table_behind_seconds") or 0) > before  # a newer revision does not begin anew
        image.put(upstream("up", endpoint(4)))
        await commit(store, image, (1, 4))
        await until(lambda: gateway.served() == "1.4")
        await until(lambda: gateway.metric("headgate_table_behind_seconds") == 0)
    assert sum("revision not applied" in record.message for record in caplog.records) == 2


async def test_a_chunk_that_is_mended_is_applied_without_another_revision() -> None:
    store, image = Shakable(), small_image()
    gateway = Gateway(store)
    manifest, chunks = publish(image, (1, 1))
    await store.put_chunks(chunks)
    store.damage(chunks[0].digest)
    await store.commit(manifest, None)
    async with gateway.following():
        await until(lambda: (gateway.metric("headgate_table_refusals_total") or 0) >= 1)
        await store.put_chunks(chunks)
        await until(lambda: gateway.served() == "1.1")


async def test_a_certificate_that_cannot_be_opened_costs_only_itself(caplog: pytest.LogCaptureFixture) -> None:
    store, image = Shakable(), small_image()
    image.put(certificate("good", seal(b"key", [KEY.public_key]), "foo.com"))
    image.put(certificate("bad", seal(b"key", [PrivateKey.generate().public_key]), "bar.com"))
    gateway = Gateway(store)
    await commit(store, image, (1, 1))
    async with gateway.following():
        await until(lambda: gateway.served() == "1.1")
    assert [item.key for item in gateway.certificates if item.private_key] == ["good"]
    assert gateway.metric("headgate_table_refused_certificates") == 1
    assert "certificate refused" in caplog.text


async def test_a_certificate_that_left_the_table_is_not_counted_as_refused_any_more() -> None:
    store, image = Shakable(), small_image()
    image.put(certificate("good", seal(b"key", [KEY.public_key]), "foo.com"))
    image.put(certificate("bad", seal(b"key", [PrivateKey.generate().public_key]), "bar.com"))
    gateway = Gateway(store)
    await commit(store, image, (1, 1))
    async with gateway.following():
        await until(lambda: gateway.served() == "1.1")
        image.discard("certificates", "bad")
        await commit(store, image, (1, 2))
        await until(lambda: gateway.served() == "1.2")
    assert [item.key for item in gateway.certificates] == ["good"]
    assert gateway.metric("headgate_table_refused_certificates") == 0


async def test_many_certificates_are_handed_over_in_slices() -> None:
    store, image, sealed = Shakable(), small_image(), seal(b"key", [KEY.public_key])
    for number in range(250):
        image.put(certificate(f"c{number}", sealed, f"h{number}.com"))
    gateway = Gateway(store)
    await commit(store, image, (1, 1))
    async with gateway.following():
        await until(lambda: len(gateway.certificates) == 250)
        assert gateway.slices == [100, 100, 50]
        for number in range(250):
            image.discard("certificates", f"c{number}")
        await commit(store, image, (1, 2))
        await until(lambda: not gateway.certificates)
    assert gateway.slices == [100, 100, 50] * 2


async def test_losing_the_store_changes_nothing_but_the_tables_age() -> None:
    store = Shakable()
    gateway = Gateway(store)
    await commit(store, small_image(), (1, 1))
    async with gateway.following():
        await until(lambda: gateway.metric("headgate_table_in_sync") == 1)
        store.is_away = True
        age = gateway.metric("headgate_table_age_seconds") or 0
        await until(lambda: (gateway.metric("headgate_table_age_seconds") or 0) > age + 0.1)
        assert gateway.reaches() == "10.0.0.1:80"
        store.is_away = False
        await until(lambda: (gateway.metric("headgate_table_age_seconds") or 1) < 0.1)


async def test_the_poll_alone_finds_a_revision_that_no_watch_told_of() -> None:
    store, image = Shakable(), small_image()
    gateway = Gateway(store)
    await commit(store, image, (1, 1))
    async with gateway.following():
        await until(lambda: gateway.served() == "1.1")
        store.is_silent = True
        await commit(store, small_image(2), (1, 2))
        await until(lambda: gateway.served() == "1.2")


async def test_a_burst_of_revisions_ends_at_the_last() -> None:
    store, image = Shakable(), small_image()
    gateway = Gateway(store)
    async with gateway.following():
        for revision in range(1, 30):
            image.put(upstream("up", endpoint(revision)))
            await commit(store, image, (1, revision))
        await until(lambda: gateway.served() == "1.29")
    assert gateway.reaches() == "10.0.0.29:80"


async def test_a_manifest_of_another_revision_is_refused(caplog: pytest.LogCaptureFixture) -> None:
    class Confused(Shakable):
        async def get_manifest(self, table: str, version: Version) -> Manifest:
            manifest = await super().get_manifest(table, version)
            return manifest.model_copy(update={"version": Version(9, 9)})

    store = Confused()
    gateway = Gateway(store)
    await commit(store, small_image(), (1, 1))
    async with gateway.following():
        await until(lambda: "revision not applied" in caplog.text)
    assert gateway.served() is None


async def test_a_revision_of_a_later_release_is_refused_with_advice_and_the_table_before_goes_on() -> None:
    store = Shakable()
    gateway = Gateway(store)
    await commit(store, small_image(), (1, 1))
    async with gateway.following():
        await until(lambda: gateway.served() == "1.1")
        manifest, chunks = publish(small_image(2), (1, 2))
        await store.put_chunks(chunks)
        later = manifest.model_copy(update={"schema_version": SCHEMA + 1})
        await store.commit(later, await store.read_pointer("default"))
        await until(lambda: gateway.follower.refusal is not None)
        assert "upgrade the gateways" in str(gateway.follower.refusal)
        assert gateway.served() == "1.1"
        await commit(store, small_image(3), (1, 3))  # by a translator of the release before
        await until(lambda: gateway.served() == "1.3")


async def test_traffic_runs_between_the_chunks_of_a_large_table(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    store = Shakable()
    gateway = Gateway(store)
    image = TableImage(host(f"h{number}.com", route("/", "prefix", f"up{number}")) for number in range(1000))
    await commit(store, image, (1, 1))
    turns = 0
    async with gateway.following():
        while gateway.served() is None:
            await asyncio.sleep(0)
            turns += 1
    assert turns > len(image.chunks())
