"""Gateway API in a cluster: traffic, and the status that its objects get."""

import asyncio
import ssl
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509

from fakes.gateway.ports import free_port
from fakes.gateway.proxied import answering
from fakes.gateway.served import named, origins
from fakes.gateway.tls import Authority, SelfSigned, unverified
from fakes.kubernetes.api import FakeKubernetes
from fakes.kubernetes.store import Resource
from fakes.peers.echo import EchoServer
from fakes.stack import Stack
from fakes.translator.deltas import endpoint_slice, service
from fakes.translator.gateway_api import (
    CONTROLLER,
    GROUP,
    by_config_maps,
    definition,
    gateway,
    gateway_class,
    grant,
    https,
    listener,
    prefix,
    route,
    stream_route,
    tls_policy,
    to,
)
from fakes.waiting import until
from headgate.common.resources import DEFINITION, GATEWAY_KINDS

HOST = "shop.example.com"
THEIRS = {
    "parentRef": {"group": GROUP, "kind": "Gateway", "name": "theirs"},
    "controllerName": "example.com/gateway",
    "conditions": [{"type": "Accepted", "status": "True", "reason": "Accepted", "message": ""}],
}


def install(api: FakeKubernetes) -> None:
    for kind in (DEFINITION, *GATEWAY_KINDS):
        version = f"{kind.group}/{kind.versions[0]}"
        api.install(version, Resource(kind.group, kind.resource, kind.kind, kind.namespaced, is_custom=True))


@pytest.fixture
async def api() -> AsyncIterator[FakeKubernetes]:
    async with FakeKubernetes(allows_loopback=True) as made:
        yield made


def bare(manifest: Any) -> Any:
    """A manifest as somebody applies it, in the version that the server has."""
    metadata = {key: value for key, value in manifest["metadata"].items() if key not in ("uid", "generation")}
    version = f"{GROUP}/v1" if manifest["apiVersion"].startswith(GROUP) else manifest["apiVersion"]
    return {**manifest, "apiVersion": version, "metadata": metadata}


def short(conditions: Any) -> dict[str, str]:
    return {one["type"]: f"{one['status']} {one['reason']}" for one in conditions or ()}


def parents(api: FakeKubernetes, name: str = "route") -> list[Any]:
    found: list[Any] = api.get("httproutes", name).get("status", {}).get("parents", [])
    return found


def ours(api: FakeKubernetes, name: str = "route") -> dict[str, str]:
    """Return the conditions of a route's parents that are ours."""
    return {
        kind: said
        for parent in parents(api, name)
        if parent["controllerName"] == CONTROLLER
        for kind, said in short(parent["conditions"]).items()
    }


def status_of(api: FakeKubernetes) -> Any:
    return api.get("gateways", "gw").get("status", {})


async def shown(stack: Stack) -> bytes:
    """Return the certificate that clients get."""
    _, writer = await asyncio.open_connection("127.0.0.1", stack.https_port, ssl=unverified(), server_hostname=HOST)
    found = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
    writer.close()
    return ssl.DER_cert_to_PEM_cert(found).encode()


async def test_routes_are_served_by_their_gateway_and_told_how_they_stand(api: FakeKubernetes, tmp_path: Path) -> None:
    pair = SelfSigned(HOST)
    named = {"name": "pair", "namespace": "certs"}
    both = gateway(listener(hostname="*.example.com"), https("https", named, hostname="*.example.com"))
    async with EchoServer("web") as web:
        install(api)
        for manifest in (
            *(service("web"), endpoint_slice("web", "127.0.0.1", port=web.port)),
            *(definition("v1.6.3"), gateway_class(), both, pair.secret("certs", "pair")),
            route(to("web", matches=[prefix("/a")]), hostnames=[HOST]),
        ):
            api.apply(bare(manifest))
        api.set_status("httproutes", "route", {"parents": [THEIRS]})
        kubeconfig = api.write_kubeconfig(tmp_path / "config")
        async with Stack(kubeconfig=kubeconfig, publish_address="192.0.2.1") as stack:
            answer = await stack.wait_for_answer(HOST, "/a/b")
            assert answer.json["name"] == "web"
            assert (await stack.get(HOST, "/other")).status == 404

            # All that is there is told.
            await until(lambda: ours(api).get("Programmed") == "True Programmed")
            assert ours(api)["Accepted"] == "True Accepted"
            assert parents(api)[0] == THEIRS
            await until(lambda: short(status_of(api).get("conditions")).get("Programmed") == "True Programmed")
            assert status_of(api)["addresses"] == [{"type": "IPAddress", "value": "192.0.2.1"}]
            listeners = {one["name"]: one for one in status_of(api)["listeners"]}
            assert [one["attachedRoutes"] for one in listeners.values()] == [1, 1]
            assert short(listeners["https"]["conditions"])["ResolvedRefs"] == "False RefNotPermitted"
            of_class = api.get("gatewayclasses", "edge")["status"]
            assert short(of_class["conditions"]) == {
                "Accepted": "True Accepted",
                "SupportedVersion": "True SupportedVersion",
            }
            assert {"name": "HTTPRoute"} in of_class["supportedFeatures"]

            # A grant lets the certificate in.
            api.apply(bare(grant("Gateway", "default", "Secret", namespace="certs")))

            async def is_shown() -> bool:
                return await shown(stack) == pair.certificate_pem

            await until(is_shown)

            def https_stands() -> bool:
                found = {one["name"]: short(one["conditions"]) for one in status_of(api)["listeners"]}
                return found["https"].get("Programmed") == "True Programmed"

            await until(https_stands)

            # A port that gateways cannot open is told of its listener.
            taken = listener("taken", stack.http_port)
            api.apply(bare({**both, "spec": {**both["spec"], "listeners": [*both["spec"]["listeners"], taken]}}))

            def is_said() -> bool:
                found = {one["name"]: short(one["conditions"]) for one in status_of(api)["listeners"]}
                return found.get("taken", {}).get("Programmed") == "False PortUnavailable"

            await until(is_said)
            api.apply(bare(both))

            # A change of the route is told with its generation.
            api.apply(bare(route(to("gone"), hostnames=["shop.example.org"])))
            await until(lambda: ours(api).get("Accepted") == "False NoMatchingListenerHostname")
            assert ours(api)["ResolvedRefs"] == "False BackendNotFound"
            generation = api.get("httproutes", "route")["metadata"]["generation"]
            assert {one["observedGeneration"] for one in parents(api)[1]["conditions"]} == {generation}
            await stack.wait_for_answer(HOST, "/a/b", 404)
            await until(lambda: [one["attachedRoutes"] for one in status_of(api)["listeners"]] == [0, 0])

            # A route that leaves our Gateway leaves no entry of ours behind.
            api.apply(bare(route(to("web"), parents=[{"name": "theirs"}])))
            await until(lambda: parents(api) == [THEIRS])


async def test_connections_and_tls_with_services_are_served_and_told(api: FakeKubernetes, tmp_path: Path) -> None:
    authority, port = Authority(), free_port()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*authority.issue("web.example", x509.DNSName("web.example")).write(tmp_path))
    known = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "ca", "namespace": "default"}}
    policy, tcp = tls_policy(**by_config_maps("ca")), stream_route("TCPRoute", "web")
    async with origins(answering(named(b"secure")), tls=context) as (secure,):
        install(api)
        for manifest in (
            *(service("web"), endpoint_slice("web", "127.0.0.1", port=secure.port)),
            *(gateway_class(), gateway(listener(), listener("tcp", port, "TCP"))),
            *(route(to("web"), hostnames=[HOST]), tcp, policy),
        ):
            api.apply(bare(manifest))
        kubeconfig = api.write_kubeconfig(tmp_path / "config")
        async with Stack(kubeconfig=kubeconfig, publish_address="192.0.2.1") as stack:
            await until(lambda: of_policy(api).get("Accepted") == "False NoValidCACertificate")
            await stack.wait_for_answer(HOST, "/", 503)
            api.apply({**known, "data": {"ca.crt": authority.pem.decode()}})
            await until(lambda: of_policy(api).get("Accepted") == "True Accepted")
            assert of_policy(api)["ResolvedRefs"] == "True ResolvedRefs"
            await stack.wait_for_answer(HOST, "/", 200)

            # Connections go on as they come, TLS too.
            trusting = ssl.create_default_context(cadata=authority.pem.decode())
            _, writer = await asyncio.open_connection("127.0.0.1", port, ssl=trusting, server_hostname="web.example")
            writer.close()

            def tcp_stands() -> bool:
                (entry,) = api.get("tcproutes", "stream").get("status", {}).get("parents", [{"conditions": ()}])
                return short(entry["conditions"]).get("Programmed") == "True Programmed"

            await until(tcp_stands)


def of_policy(api: FakeKubernetes) -> dict[str, str]:
    """Return the conditions of the policy at its Gateway."""
    entries = api.get("backendtlspolicies", "policy").get("status", {}).get("ancestors") or ()
    return next((short(one["conditions"]) for one in entries if one["controllerName"] == CONTROLLER), {})
