"""Schemes of ApisixUpstreams and Services, and certificates towards nodes, from manifests to the wire."""

import contextlib
import ssl
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509

from fakes.gateway.proxied import OK, answering
from fakes.gateway.served import HOST, origins, sealed, served
from fakes.gateway.tls import Authority
from fakes.peers.http2 import Http2Origin, answer_with
from fakes.translator.apisix import resource, route, rule
from fakes.translator.applied import Applied, switching
from fakes.translator.deltas import endpoint_slice, ingress, service

BACKEND = {"serviceName": "web", "servicePort": 80}


def context(folder: Path, authority: Authority, *, asks: bool = False, alpn: str = "http/1.1") -> ssl.SSLContext:
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    made.load_cert_chain(*authority.issue("web", x509.DNSName("web.example")).write(folder))
    made.set_alpn_protocols([alpn])
    if asks:
        made.verify_mode = ssl.CERT_REQUIRED
        made.load_verify_locations(cadata=authority.pem.decode())
    return made


def web(port: int, app_protocol: str = "") -> tuple[Any, Any]:
    ports = [{"name": "http", "port": 80, **({"appProtocol": app_protocol} if app_protocol else {})}]
    return service("web", ports=ports), endpoint_slice("web", "127.0.0.1", port=port)


def pair(authority: Authority) -> Any:
    """A Secret with a certificate of ours, as a watcher seals it."""
    issued = authority.issue("gateway")
    files = {"tls.crt": issued.chain_pem, "tls.key": issued.key_pem}
    values = {name: sealed(content).model_dump(include={"boxes"}) for name, content in files.items()}
    facts = {"chain_pem": issued.chain_pem.decode(), "names": [], "fingerprint": "ours", "problem": None}
    metadata = {"name": "ours", "namespace": "default"}
    made = {"apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/tls", "metadata": metadata}
    return {**made, "sealed": {"values": values, "certificate": facts}}


@contextlib.asynccontextmanager
async def http2(tls: ssl.SSLContext | None = None) -> AsyncIterator[Http2Origin]:
    origin = Http2Origin(answer_with(b"ok"))
    await origin.start(tls)
    try:
        yield origin
    finally:
        await origin.stop()


ROUTE = route(rule(hosts=[HOST], backends=[BACKEND]))


@pytest.mark.parametrize("by", ["ApisixUpstream", "appProtocol", "annotation"])
async def test_a_backend_may_speak_https_and_websockets_over_it(by: str, tmp_path: Path) -> None:
    async with origins(switching, tls=context(tmp_path, Authority())) as (origin,), served() as proxy:
        applied = Applied(proxy)
        applied.apply(*web(origin.port, "https" if by == "appProtocol" else ""))
        if by == "annotation":
            asked = {"k8s.apisix.apache.org/upstream-scheme": "https", "k8s.apisix.apache.org/enable-websocket": "true"}
            applied.apply(ingress("web", host=HOST, annotations=asked))
        else:
            applied.apply(ROUTE)
        if by == "ApisixUpstream":
            applied.apply(resource("ApisixUpstream", "web", {"scheme": "https"}))
        assert await applied.status() == 200
        client = await applied.offer_websocket()
        assert (await client.head()).startswith(b"HTTP/1.1 101 ")
        await client.send(b"hello")
        assert await client.exactly(5) == b"hello"


@pytest.mark.parametrize("scheme", ["grpc", "grpcs"])
async def test_a_backend_may_speak_http2(scheme: str, tmp_path: Path) -> None:
    tls = context(tmp_path, Authority(), alpn="h2") if scheme == "grpcs" else None
    async with http2(tls) as origin, served() as proxy:
        applied = Applied(proxy)
        applied.apply(*web(origin.port), resource("ApisixUpstream", "web", {"scheme": scheme}), ROUTE)
        assert (await applied.get()).body == b"ok"
        assert len(origin.requests) == 1


@pytest.mark.parametrize("scheme", ["https", "grpcs"])
async def test_a_backend_that_asks_for_a_certificate_is_shown_ours(scheme: str, tmp_path: Path) -> None:
    authority = Authority()
    tls = context(tmp_path, authority, asks=True, alpn="h2" if scheme == "grpcs" else "http/1.1")
    async with contextlib.AsyncExitStack() as stack:
        if scheme == "grpcs":
            port = (await stack.enter_async_context(http2(tls))).port
        else:
            port = (await stack.enter_async_context(origins(answering(OK), tls=tls)))[0].port
        applied = Applied(await stack.enter_async_context(served()))
        applied.apply(*web(port), resource("ApisixUpstream", "web", {"scheme": scheme}), ROUTE)
        assert await applied.status() == 502
        with_ours = {"scheme": scheme, "tlsSecret": {"name": "ours", "namespace": "default"}}
        applied.apply(pair(authority), resource("ApisixUpstream", "web", with_ours))
        assert await applied.status() == 200


async def test_each_port_of_a_service_has_its_own_settings(tmp_path: Path) -> None:
    ports = [{"name": "plain", "port": 80}, {"name": "tls", "port": 443}]
    async with (
        origins(answering(OK)) as (plain,),
        origins(answering(OK.replace(b"ok", b"no")), tls=context(tmp_path, Authority())) as (secure,),
        served() as proxy,
    ):
        slices = endpoint_slice("web", "127.0.0.1")
        slices["ports"] = [{"name": "plain", "port": plain.port}, {"name": "tls", "port": secure.port}]
        settings = {"scheme": "http", "portLevelSettings": [{"port": 443, "scheme": "https"}]}
        rules = [
            rule(f"r{port}", f"/{port}", hosts=[HOST], backends=[{**BACKEND, "servicePort": port}])
            for port in (80, 443)
        ]
        applied = Applied(proxy)
        applied.apply(service("web", ports=ports), slices, resource("ApisixUpstream", "web", settings), route(*rules))
        assert [(await applied.get(path)).body for path in ("/80", "/443")] == [b"ok", b"no"]
