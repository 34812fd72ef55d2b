"""Tables that are made of some clusters and namespaces only, several of them from one log."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from fakes.translator.apisix import resource, route, rule
from fakes.translator.deltas import applied, deleted, endpoint_slice, ingress, ingress_class, service, tls_secret
from fakes.translator.loop import NOW, announce, fill, idle, running, snapshots_of
from fakes.virtual_time import in_virtual_time
from fakes.waiting import until
from headgate.common.admission import Outcome, Proposal
from headgate.common.clusters import ClusterSettings, Decision
from headgate.common.resources import ObjectRef
from headgate.common.snapshot import Manifest
from headgate.common.status import StatusUpdate
from headgate.common.stores.memory.boards import MemoryStatusBoard
from headgate.common.stores.memory.stores import MemoryStores
from headgate.common.stores.reading import read_entries
from headgate.common.table import TableEntry, Upstream, VirtualHost, entry_key
from headgate.translator.admission.desk import AdmissionDesk
from headgate.translator.leading import feeds
from headgate.translator.loop import TranslatorLoop
from headgate.translator.status import poster as status_poster

TENANT = {"table": "tenant", "namespaces": ["team-*"]}


@pytest.fixture(autouse=True)
def _short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feeds, "LOOK_AROUND_S", 0.02)
    monkeypatch.setattr(status_poster, "QUIET_S", 0.01)


async def manifest(stores: MemoryStores, table: str) -> Manifest:
    pointer = await stores.snapshots.read_pointer(table)
    assert pointer is not None
    return await stores.snapshots.get_manifest(table, pointer.version)


async def entries(stores: MemoryStores, table: str) -> dict[str, TableEntry]:
    found = await read_entries(stores.snapshots, (await manifest(stores, table)).chunks)
    return {entry_key(entry): entry for entry in found}


async def hosts(stores: MemoryStores, table: str) -> set[str]:
    return {key for key, entry in (await entries(stores, table)).items() if isinstance(entry, VirtualHost)}


async def virtual_host(stores: MemoryStores, table: str, host: str) -> VirtualHost:
    found = (await entries(stores, table))[host]
    assert isinstance(found, VirtualHost)
    return found


def web(namespace: str, host: str, **extra: Any) -> Any:
    return ingress("web", namespace=namespace, host=host, **extra)


def behind(namespace: str) -> tuple[Any, Any]:
    return service(namespace=namespace), endpoint_slice("web", "10.0.0.1", namespace=namespace)


@asynccontextmanager
async def two_tables(stores: MemoryStores, **tenant: Any) -> AsyncIterator[tuple[TranslatorLoop, TranslatorLoop]]:
    async with running(stores) as edge, running(stores, **{**TENANT, **tenant}) as ours:
        await idle(stores, edge, ours)
        yield edge, ours


async def test_namespaces_select_what_becomes_routes() -> None:
    stores = MemoryStores()
    await fill(stores, web("team-a", "a.example"), web("shop", "shop.example"), *behind("team-a"), *behind("shop"))
    async with two_tables(stores):
        assert await hosts(stores, "default") == {"a.example", "shop.example"}
        assert await hosts(stores, "tenant") == {"a.example"}
        assert set(await entries(stores, "tenant")) == {"a.example", "a/team-a/web:80"}


async def test_a_stream_port_is_opened_in_the_tables_that_select_its_service() -> None:
    stores = MemoryStores()
    made = service(namespace="shop")
    made["metadata"]["annotations"] = {"headgate.dev/stream-port": "5432"}
    await fill(stores, made, web("team-a", "a.example"), *behind("team-a"))
    async with two_tables(stores):
        assert "a/shop/web:5432/tcp" in await entries(stores, "default")
        assert "a/shop/web:5432/tcp" not in await entries(stores, "tenant")


async def test_what_has_no_namespace_belongs_to_every_table() -> None:
    stores = MemoryStores()
    foreign = ingress_class("nginx", "k8s.io/ingress-nginx")
    await fill(stores, foreign, ingress_class("ours"), web("team-a", "a.example", class_name="ours"), *behind("team-a"))
    async with two_tables(stores):
        assert await hosts(stores, "tenant") == {"a.example"}


async def test_what_a_selected_object_refers_to_is_found_in_another_namespace() -> None:
    stores = MemoryStores()
    cors = {"name": "cors", "enable": True, "config": {}}
    shared = resource("ApisixPluginConfig", "shared", {"plugins": [cors]}, namespace="platform")
    fields = {"plugin_config_name": "shared", "plugin_config_namespace": "platform"}
    await fill(stores, shared, route(rule(hosts=["a.example"], **fields), namespace="team-a"), *behind("team-a"))
    async with two_tables(stores) as (edge, ours):
        [found] = (await virtual_host(stores, "tenant", "a.example")).routes
        assert [use.name for use in found.plugins] == ["cors"]
        before = await manifest(stores, "tenant")
        shared["spec"] = {"plugins": [{**cors, "config": {"max_age": 7}}]}
        await stores.log_writer.append(applied(shared))
        await idle(stores, edge, ours)
        after = await manifest(stores, "tenant")
        assert after.version > before.version
        assert [(cause.namespace, cause.name) for cause in after.causes] == [("platform", "shared")]


async def test_conflicts_are_judged_within_a_table() -> None:
    stores = MemoryStores()
    older = web("shop", "same.example", created="2024-01-01T00:00:00Z")
    await fill(stores, older, web("team-a", "same.example", created="2025-01-01T00:00:00Z"), *behind("team-a"))
    async with two_tables(stores) as (edge, ours):
        ref = ObjectRef("a", "networking.k8s.io", "ingresses", "team-a", "web")
        lost, won = edge.translation.condition(ref), ours.translation.condition(ref)
        assert lost is not None
        assert won is not None
        assert next(problem.reason for problem in lost.problems) == "HostNotOwned"
        assert "HostNotOwned" not in [problem.reason for problem in won.problems]


async def test_certificates_are_those_of_selected_objects() -> None:
    stores = MemoryStores()
    for_tls = {"tls": [{"hosts": ["a.example"], "secretName": "tls"}]}

    def secured(namespace: str) -> Any:
        made = web(namespace, "a.example")
        made["spec"] |= for_tls
        return made

    await fill(stores, *(secured(each) for each in ("shop", "team-a")), *behind("team-a"))
    for namespace in ("shop", "team-a"):
        await stores.log_writer.append(applied(tls_secret("tls", "a.example", namespace=namespace)))
    async with two_tables(stores) as (edge, ours):
        await idle(stores, edge, ours)
        assert "a/team-a/tls" in await entries(stores, "tenant")
        assert "a/shop/tls" not in await entries(stores, "tenant")


async def test_a_cluster_that_is_not_selected_takes_no_part_and_is_not_waited_for() -> None:
    stores = MemoryStores()
    shared = service()
    shared["metadata"]["annotations"] = {"headgate.dev/global": "true"}
    await fill(stores, ingress("web", host="a.example"), shared, endpoint_slice("web", "10.0.0.1"))
    await fill(stores, ingress("web", host="b.example"), shared, endpoint_slice("web", "10.9.0.1"), cluster="b")
    await announce(stores, "never-listed")
    async with running(stores, clusters=["a"]) as translator:
        await idle(stores, translator)
        assert await hosts(stores, "default") == {"a.example"}
        upstream = (await entries(stores, "default"))["a/default/web:80"]
        assert isinstance(upstream, Upstream)
        assert [endpoint.address for endpoint in upstream.endpoints] == ["10.0.0.1"]
        assert set((await manifest(stores, "default")).inputs) == {"a"}


async def test_a_table_that_lets_a_cluster_go_does_not_wait_for_it_after_a_restart() -> None:
    stores = MemoryStores()
    await fill(stores, ingress("web", host="a.example"))
    await fill(stores, ingress("web", host="b.example"), cluster="b")
    async with running(stores) as translator:
        await idle(stores, translator)
        assert await hosts(stores, "default") == {"a.example", "b.example"}
    stores.log.lose()
    await fill(stores, ingress("web", host="a.example"))
    async with running(stores, clusters=["a"]) as translator:
        await until(lambda: translator.readiness() is None)
        assert await hosts(stores, "default") == {"a.example"}


async def test_a_change_elsewhere_makes_no_revision_and_is_the_cause_of_none() -> None:
    stores = MemoryStores()
    await fill(stores, web("team-a", "a.example"), *behind("team-a"), *behind("shop"))
    async with two_tables(stores) as (edge, ours):
        before = await manifest(stores, "tenant")
        await stores.log_writer.append(applied(web("shop", "shop.example")))
        await stores.log_writer.append(applied(endpoint_slice("web", "10.0.0.7", namespace="shop")))
        await idle(stores, edge, ours)
        assert (await manifest(stores, "tenant")).version == before.version
        assert await hosts(stores, "default") == {"a.example", "shop.example"}
        await stores.log_writer.append(applied(endpoint_slice("web", "10.0.0.8", namespace="shop")))
        await stores.log_writer.append(applied(web("team-a", "b.example")))
        await idle(stores, edge, ours)
        causes = (await manifest(stores, "tenant")).causes
        assert [(cause.namespace, cause.kind) for cause in causes] == [("team-a", "Ingress")]


async def test_a_revision_says_what_its_table_is_made_of() -> None:
    stores = MemoryStores()
    await fill(stores, web("team-a", "a.example"))
    async with running(stores, **TENANT) as translator:
        await idle(stores, translator)
        assert (await manifest(stores, "tenant")).selection.namespaces == ("team-*",)
        first = (await manifest(stores, "tenant")).version
    async with running(stores, table="tenant", namespaces=["team-a"]) as translator:
        await until(lambda: snapshots_of(stores).pointers["tenant"].version > first)
        assert (await manifest(stores, "tenant")).selection.namespaces == ("team-a",)


async def test_tables_that_share_chunks_drop_their_own_history_only() -> None:
    stores = MemoryStores()
    await fill(stores, web("team-a", "a.example"), *behind("team-a"))
    async with two_tables(stores, keep_revisions=1) as (edge, ours):
        for number in range(5):
            await stores.log_writer.append(applied(web("team-a", f"a{number}.example")))
            await idle(stores, edge, ours)
        await ours.output.publisher.collect_garbage()
        assert len(await stores.snapshots.versions("tenant")) == 1
        assert len(await stores.snapshots.versions("default")) >= 5
        for version in await stores.snapshots.versions("default"):
            assert await read_entries(
                stores.snapshots, (await stores.snapshots.get_manifest("default", version)).chunks
            )


def posted(stores: MemoryStores, table: str, cluster: str = "a") -> StatusUpdate | None:
    assert isinstance(stores.statuses, MemoryStatusBoard)
    found = (update for _, update in stores.statuses.updates.values())
    return next((each for each in found if (each.table, each.ref.cluster) == (table, cluster)), None)


async def test_each_table_has_a_status_of_its_own_and_lets_go_of_nothing_else() -> None:
    stores = MemoryStores()
    await fill(stores, web("team-a", "a.example"), *behind("team-a"))
    mine, others = {"publish_addresses": ["192.0.2.2"]}, {"publish_addresses": ["192.0.2.1"]}
    async with running(stores, **others), running(stores, **TENANT, **mine):
        await until(lambda: posted(stores, "default") and posted(stores, "tenant"))
    wanted = posted(stores, "tenant")
    assert wanted is not None
    assert wanted.addresses is not None
    assert [each.ip for each in wanted.addresses] == ["192.0.2.2"]
    before = posted(stores, "default")
    async with running(stores, table="tenant", namespaces=["team-b"], **mine):
        await until(lambda: (left := posted(stores, "tenant")) and not left.conditions)
    left = posted(stores, "tenant")
    assert left is not None
    assert (left.addresses, [each.ip for each in left.withdrawn]) == ((), ["192.0.2.2"])
    assert posted(stores, "default") == before


async def test_what_was_said_of_a_cluster_that_is_selected_no_longer_is_taken_back() -> None:
    stores = MemoryStores()
    await fill(stores, web("team-a", "a.example"))
    await fill(stores, web("team-a", "b.example"), cluster="b")
    async with running(stores, **TENANT):
        await until(lambda: posted(stores, "tenant"))
    async with running(stores, clusters=["b"], **TENANT):
        await until(lambda: (left := posted(stores, "tenant")) and not left.conditions)


@in_virtual_time
async def test_tables_whose_gateways_have_other_plugins_do_not_fight_over_last_good_versions() -> None:
    stores = MemoryStores()
    plugin = {"headgate.dev/plugins": '[{"name": "quota"}]'}
    await fill(stores, web("team-a", "a.example"), *behind("team-a"))
    async with two_tables(stores, plugin_names=["quota"]) as (edge, ours):
        await stores.log_writer.append(applied(web("team-a", "b.example", annotations=plugin)))
        await idle(stores, edge, ours)
        await until(lambda: not edge.translation.world.tracker.unwritten)
        settled = (await stores.log_reader.position()).last_sequence
        await asyncio.sleep(0.2)
        assert (await stores.log_reader.position()).last_sequence == settled
        assert not ours.translation.world.tracker.unwritten
        assert await hosts(stores, "default") == {"a.example"}
        assert await hosts(stores, "tenant") == {"b.example"}


async def test_a_proposal_is_judged_by_the_tables_that_select_it() -> None:
    stores = MemoryStores()
    await fill(stores, web("team-a", "a.example"), *behind("team-a"))
    taken = ingress("new", namespace="shop", host="a.example")
    proposal = Proposal(ref=applied(taken).ref, object=taken)
    async with two_tables(stores, clusters=["a"]) as (edge, ours):
        assert AdmissionDesk(edge).judge(proposal).findings
        assert AdmissionDesk(ours).judge(proposal).outcome is Outcome.FOREIGN
        elsewhere = proposal.model_copy(update={"ref": proposal.ref._replace(cluster="b")})
        assert AdmissionDesk(ours).judge(elsewhere).outcome is Outcome.FOREIGN
        assert AdmissionDesk(edge).judge(elsewhere).outcome is Outcome.NOT_SYNCED


async def test_an_object_that_moves_out_of_the_log_leaves_its_tables() -> None:
    stores = MemoryStores()
    await fill(stores, web("team-a", "a.example"), *behind("team-a"))
    async with two_tables(stores) as (edge, ours):
        await stores.log_writer.append(deleted(web("team-a", "a.example")))
        await idle(stores, edge, ours)
        assert await hosts(stores, "tenant") == set()


async def test_hops_go_to_gateways_of_the_same_table() -> None:
    stores = MemoryStores()
    shared = service(namespace="team-a")
    shared["metadata"]["annotations"] = {"headgate.dev/global": "true"}
    slices = endpoint_slice("web", "10.0.0.1", namespace="team-a")
    await fill(stores, web("team-a", "a.example"), shared, slices)
    await fill(stores, shared, endpoint_slice("web", "10.9.0.1", namespace="team-a"), cluster="b")
    decided = ClusterSettings(gateways=("http://192.0.2.1:80",), table_gateways={"tenant": ("http://192.0.2.2:80",)})
    await stores.log_writer.append(Decision.make(decided, "ada", NOW).as_delta("b"))

    async def hops(table: str) -> list[str]:
        upstream = (await entries(stores, table))["a/team-a/web:80"]
        assert isinstance(upstream, Upstream)
        assert {each.address for each in upstream.endpoints if each.is_local} == {"10.9.0.1"}
        return [each.address for each in upstream.endpoints if each.hop]

    async with two_tables(stores), running(stores, table="third") as third:
        await idle(stores, third)
        assert await hops("default") == ["192.0.2.1"]
        assert await hops("tenant") == ["192.0.2.2"]
        assert await hops("third") == []
