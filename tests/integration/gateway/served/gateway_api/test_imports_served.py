"""ServiceImports as backends, with manifests of two clusters, from manifests to the wire."""

import contextlib
from collections import Counter
from collections.abc import AsyncIterator
from typing import Any

from fakes.gateway.ports import free_port
from fakes.gateway.proxied import answering
from fakes.gateway.served import HOST, asking, named, origins, read_answer
from fakes.peers.grpc_service import grpc_server, grpc_stub
from fakes.translator.applied import World, world
from fakes.translator.deltas import (
    decision,
    endpoint_slice,
    imported_slice,
    service,
    service_export,
    service_import,
)
from fakes.translator.gateway_api import gateway, gateway_class, grant, grpc_route, listener, route, stream_route, to

IMPORT = {"group": "multicluster.x-k8s.io", "kind": "ServiceImport", "name": "web", "port": 80}


def pods(port: int) -> tuple[Any, Any]:
    return service("web"), endpoint_slice("web", "127.0.0.1", port=port)


@contextlib.asynccontextmanager
async def two_clusters() -> AsyncIterator[tuple[World, tuple[int, int]]]:
    """A proxy with a Gateway in the cluster `a`, and a server for each of `a` and `b`."""
    async with origins(answering(named(b"a")), answering(named(b"b"))) as servers, world() as made:
        made.proxy.apply(gateway_class(), gateway())
        yield made, (servers[0].port, servers[1].port)


async def found(made: World, count: int = 8) -> Counter[str]:
    return Counter(await made.proxy.bodies(count))


async def test_what_clusters_export_is_joined_under_the_name_of_the_import() -> None:
    async with two_clusters() as (made, (one, two)):
        written = route(to(IMPORT))
        made.proxy.apply(written, *pods(one))
        made.proxy.apply(*pods(two), cluster="b")
        assert await made.proxy.status() == 500
        assert made.proxy.errors(written) == ["BackendNotFound"]
        made.proxy.apply(service_export(), cluster="b")
        assert await found(made) == {"b": 8}
        made.proxy.apply(service_export())
        assert await found(made) == {"a": 4, "b": 4}
        made.proxy.delete(service_export(), cluster="b")
        assert await found(made) == {"a": 8}


async def test_clusters_have_weights_and_are_drained() -> None:
    async with two_clusters() as (made, (one, two)):
        made.proxy.apply(route(to(IMPORT)), *pods(one), service_export())
        made.proxy.apply(*pods(two), service_export(), cluster="b")
        made.proxy.apply(decision("a", weight=3), cluster="a")
        assert await found(made) == {"a": 6, "b": 2}
        made.proxy.apply(
            decision("b", drained={"reason": "upgrade", "by": "me", "at": "2026-01-01T00:00:00Z"}), cluster="b"
        )
        assert await found(made) == {"a": 8}


async def test_slices_of_a_controller_go_before_what_clusters_export() -> None:
    async with two_clusters() as (made, (one, two)):
        made.proxy.apply(route(to(IMPORT)), service_import(), *pods(one), service_export())
        assert await found(made) == {"a": 8}
        made.proxy.apply(imported_slice("web", "127.0.0.1", source="b", port=two))
        assert await found(made) == {"b": 8}
        made.proxy.delete(imported_slice("web", source="b"))
        assert await found(made) == {"a": 8}


async def test_clusters_of_slices_have_the_weights_of_clusters() -> None:
    async with two_clusters() as (made, (one, two)):
        made.proxy.apply(route(to(IMPORT)), service_import())
        made.proxy.apply(imported_slice("web", "127.0.0.1", source="b", port=one))
        made.proxy.apply(imported_slice("web", "127.0.0.1", source="c", port=two))
        made.proxy.apply(decision("b", weight=3), cluster="b")
        assert await found(made) == {"a": 6, "b": 2}


async def test_an_import_without_endpoints_answers_503_and_one_that_is_nothing_500() -> None:
    async with two_clusters() as (made, _):
        written = route(to(IMPORT))
        made.proxy.apply(written, service_import())
        assert await made.proxy.status() == 503
        assert made.proxy.problems(written) == ["NoReadyEndpoints"]
        made.proxy.delete(service_import())
        assert await made.proxy.status() == 500


async def test_a_port_that_the_import_lacks_is_told() -> None:
    async with two_clusters() as (made, (one, _)):
        written = route(to({**IMPORT, "port": 81}))
        made.proxy.apply(written, *pods(one), service_export())
        assert await made.proxy.status() == 500
        assert "must be one of the ports of ServiceImport default/web: 80 (http)" in made.proxy.messages(written)
        made.proxy.apply(route(to({key: value for key, value in IMPORT.items() if key != "port"})))
        assert await found(made) == {"a": 8}


async def test_an_import_of_another_namespace_needs_a_grant() -> None:
    async with two_clusters() as (made, (one, _)):
        theirs = [{**each, "metadata": {**each["metadata"], "namespace": "other"}} for each in pods(one)]
        written = route(to({**IMPORT, "namespace": "other"}))
        made.proxy.apply(written, *theirs, service_export(namespace="other"))
        assert made.proxy.errors(written) == ["RefNotPermitted"]
        permission = grant("HTTPRoute", "default", "ServiceImport", namespace="other")
        permission["spec"]["to"][0]["group"] = IMPORT["group"]
        made.proxy.apply(permission)
        assert await found(made) == {"a": 8}


async def test_calls_and_connections_go_to_imports_too() -> None:
    port = free_port()
    async with two_clusters() as (made, (one, _)), grpc_server(None) as (echo, number):
        made.proxy.apply(gateway(listener(), listener("tcp", port, "TCP")), stream_route("TCPRoute", IMPORT))
        made.proxy.apply(grpc_route(to({**IMPORT, "name": "calls"})), service_import("calls"))
        made.proxy.apply(imported_slice("calls", "127.0.0.1", source="b", port=number))
        made.proxy.apply(*pods(one), service_export(), cluster="b")
        client = await made.proxy.proxy.connect(port=port)
        await client.send(asking())
        assert (await read_answer(client)).body == b"a"
        async with grpc_stub(made.proxy.proxy.port, authority=HOST) as stub:
            assert await stub.unary(b"abc") == b"cba"
            assert len(echo.metadata) == 1
