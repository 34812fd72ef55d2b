"""Resources of Apache APISIX in manifests on disk and in a cluster, seen from a client."""

import asyncio
import base64
import json
import ssl
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, NamedTuple

import aiohttp
import pytest
import pytest_asyncio

from fakes.gateway.ports import free_ports
from fakes.gateway.tls import Authority, SelfSigned, unverified
from fakes.kubernetes.hands import Hands
from fakes.peers.echo import EchoServer
from fakes.stack import Stack
from fakes.translator.apisix import resource, route, rule
from fakes.translator.deltas import endpoint_slice
from fakes.translator.deltas import ingress as ingress_object
from fakes.translator.deltas import service as service_object
from fakes.translator.manifests import service, write
from fakes.waiting import until

pytestmark = pytest.mark.asyncio(loop_scope="module")


class World(NamedTuple):
    stack: Stack
    folder: Path
    servers: dict[str, EchoServer]

    def write(self, name: str, *manifests: Any) -> None:
        """Write a file of manifests."""
        write(self.folder, f"{name}.yaml", *(f"{json.dumps(manifest)}\n" for manifest in manifests))

    async def name(self, host: str, path: str = "/", **request: Any) -> str:
        """Return who answers a request, or its status."""
        answer = await self.stack.get(host, path, **request)
        return str(answer.json["name"]) if answer.status == 200 else str(answer.status)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def world(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[World]:
    folder = tmp_path_factory.mktemp("manifests")
    async with EchoServer("one") as one, EchoServer("two") as two:
        servers = {"one": one, "two": two}
        write(folder, "services.yaml", *(service(name, server.port) for name, server in servers.items()))
        made = World(Stack(manifests=folder, extra=["--access-log=off"]), folder, servers)
        made.write("main", route(rule("main", "/main*", backends=[to("one")]), name="main"))
        async with made.stack:
            await made.stack.wait_for_answer("main.example", "/main")
            yield made


def to(name: str, **fields: Any) -> Any:
    return {"serviceName": name, "servicePort": 80, **fields}


async def test_rules_take_requests_in_the_order_of_apisix(world: World) -> None:
    header = {"subject": {"scope": "Header", "name": "X-Two"}, "op": "Equal", "value": "yes"}
    rules = [
        rule("all", "/*", hosts=["*.order.example"], backends=[to("one")]),
        rule("longer", "/a*", hosts=["*.order.example"], backends=[to("two")]),
        rule("exact", "/a", hosts=["x.order.example"], match_exprs=[header], backends=[to("two")]),
        rule("posts", "/p*", hosts=["*.order.example"], match_methods=["POST"], backends=[to("two")]),
    ]
    world.write("order", route(*rules, name="order"))
    await world.stack.wait_for_answer("x.order.example", "/")
    assert await world.name("x.order.example", "/abc") == "two"
    assert await world.name("x.order.example", "/b") == "one"
    assert await world.name("x.order.example", "/p", method="POST") == "two"
    assert await world.name("x.order.example", "/p") == "one"
    # What the exact host does not take falls through to the wildcard, and from there to rules without hosts.
    assert await world.name("x.order.example", "/a", headers={"X-Two": "yes"}) == "two"
    assert await world.name("order.example", "/main") == "one"


async def test_weights_split_requests(world: World) -> None:
    split = [to("one", weight=1), to("two", weight=1), to("one", weight=0, resolveGranularity="endpoint")]
    world.write("split", route(rule(hosts=["split.example"], backends=split), name="split"))
    await world.stack.wait_for_answer("split.example", "/")
    assert {await world.name("split.example") for _ in range(20)} == {"one", "two"}


async def test_a_body_decides_where_a_request_goes(world: World) -> None:
    body = {"subject": {"scope": "Body", "name": "model.name"}, "op": "Equal", "value": "big"}
    rules = [
        rule("big", "/b", hosts=["body.example"], match_exprs=[body], backends=[to("two")]),
        rule("other", "/*", hosts=["body.example"], backends=[to("one")]),
    ]
    world.write("body", route(*rules, name="body"))
    await world.stack.wait_for_answer("body.example", "/")
    sent = {"method": "POST", "headers": {"Content-Type": "application/json"}}
    assert await world.name("body.example", "/b", body=b'{"model": {"name": "big"}}', **sent) == "two"
    assert await world.name("body.example", "/b", body=b'{"model": {"name": "small"}}', **sent) == "one"


async def test_an_upstream_is_shaped_by_its_object_and_comes_back_when_that_goes(world: World) -> None:
    world.write("shaped", route(rule(hosts=["shaped.example"], backends=[to("one")]), name="shaped"))
    await world.stack.wait_for_answer("shaped.example", "/")
    settings = {"passHost": "rewrite", "upstreamHost": "inner.example", "retries": 2, "loadbalancer": {"type": "ewma"}}
    world.write("upstream", resource("ApisixUpstream", "one", settings))

    async def seen(host: str) -> bool:
        return bool((await world.stack.get("shaped.example", "/")).json["headers"]["Host"] == [host])

    await until(lambda: seen("inner.example"))
    (world.folder / "upstream.yaml").unlink()
    await until(lambda: seen("shaped.example"))


async def test_external_nodes_get_requests_beside_services(world: World) -> None:
    nodes = [{"name": "localhost", "type": "Domain", "port": world.servers["two"].port}]
    mixed = rule(hosts=["ext.example"], backends=[to("one")], upstreams=[{"name": "ext"}])
    world.write("ext", route(mixed, name="ext"), resource("ApisixUpstream", "ext", {"externalNodes": nodes}))
    await world.stack.wait_for_answer("ext.example", "/")

    async def both() -> bool:
        return {await world.name("ext.example") for _ in range(10)} == {"one", "two"}

    await until(both)


async def test_plugins_are_merged_with_shared_ones_and_secrets(world: World) -> None:
    shared = resource("ApisixPluginConfig", "shared", {"plugins": [headers("X-Shared", "a"), {"name": "request-id"}]})
    own = {**headers("X-Own", "b"), "secretRef": "words"}
    text = base64.b64encode(b"from a secret").decode()
    words = {"apiVersion": "v1", "kind": "Secret", "type": "Opaque", "metadata": {"name": "words"}}
    secret = {**words, "data": {"headers.set.X-Secret": text}}
    plugged = rule(hosts=["plugged.example"], backends=[to("one")], plugin_config_name="shared", plugins=[own])
    world.write("plugged", secret, shared, route(plugged, name="plugged"))
    answer = await world.stack.wait_for_answer("plugged.example", "/")
    assert answer.headers["X-Own"] == "b"
    assert answer.headers["X-Secret"] == "from a secret"
    assert "X-Shared" not in answer.headers
    assert "X-Request-Id" in answer.headers


def headers(name: str, value: str) -> Any:
    return {"name": "response-rewrite", "enable": True, "config": {"headers": {"set": {name: value}}}}


async def test_a_global_rule_holds_for_every_route_until_it_goes(world: World) -> None:
    world.write("global", resource("ApisixGlobalRule", "all", {"plugins": [headers("X-Everywhere", "yes")]}))

    async def holds() -> bool:
        return (await world.stack.get("main.example", "/main")).headers.get("X-Everywhere") == "yes"

    async def holds_no_more() -> bool:
        return not await holds()

    await until(holds)
    (world.folder / "global.yaml").unlink()
    await until(holds_no_more)


async def test_consumers_are_let_in_by_value_and_by_secret(world: World) -> None:
    key = base64.b64encode(b"from-secret").decode()
    secret = {"apiVersion": "v1", "kind": "Secret", "type": "Opaque", "metadata": {"name": "key"}, "data": {"key": key}}
    jack = resource("ApisixConsumer", "jack", {"authParameter": {"keyAuth": {"value": {"key": "by-value"}}}})
    jill = resource("ApisixConsumer", "jill", {"authParameter": {"keyAuth": {"secretRef": {"name": "key"}}}})
    asked = rule(hosts=["auth.example"], backends=[to("one")], authentication={"enable": True, "type": "keyAuth"})
    world.write("auth", secret, jack, jill, route(asked, name="auth"))

    async def are_known() -> bool:
        keys = ("by-value", "from-secret", "neither")
        return [await world.name("auth.example", headers={"apikey": one}) for one in keys] == ["one", "one", "401"]

    await until(are_known)
    answer = await world.stack.get("auth.example", "/", headers={"apikey": "by-value"})
    assert answer.json["headers"]["X-Consumer-Username"] == ["default_jack"]


async def test_a_stream_port_opens_and_closes_with_its_rule(world: World) -> None:
    (port,) = free_ports(1)
    stream = {"name": "tcp", "protocol": "TCP", "match": {"ingressPort": port}, "backend": to("two")}
    world.write("stream", route(name="stream", stream=[stream]))

    async def is_open() -> bool:
        try:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
        except OSError:
            return False
        writer.write(b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        answer = await reader.read()
        writer.close()
        return b'"two"' in answer

    async def is_closed() -> bool:
        return not await is_open()

    await until(is_open)
    (world.folder / "stream.yaml").unlink()
    await until(is_closed)


async def over_tls(world: World, host: str, path: str, certificate: tuple[Path, Path] | None = None) -> int | None:
    """Return the status of a request over TLS; None: the handshake was refused."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    if certificate is not None:
        context.load_cert_chain(*certificate)
    url = f"https://127.0.0.1:{world.stack.https_port}{path}"
    try:
        async with (
            aiohttp.ClientSession() as session,
            session.get(url, headers={"Host": host}, ssl=context, server_hostname=host) as answer,
        ):
            return answer.status
    except (aiohttp.ClientError, ssl.SSLError):
        return None


def opaque(name: str, **values: bytes) -> Any:
    data = {key: base64.b64encode(value).decode() for key, value in values.items()}
    return {"apiVersion": "v1", "kind": "Secret", "type": "Opaque", "metadata": {"name": name}, "data": data}


async def test_clients_show_a_certificate_except_for_some_paths(world: World, tmp_path: Path) -> None:
    host, authority = "mtls.example", Authority()
    pair = SelfSigned(host)
    secrets = [opaque("mtls", cert=pair.certificate_pem, key=pair.key_pem), opaque("authority", cert=authority.pem)]
    client = {"caSecret": {"name": "authority"}, "depth": 2, "skip_mtls_uri_regex": ["/open.*"]}
    asked = resource("ApisixTls", "mtls", {"hosts": [host], "secret": {"name": "mtls"}, "client": client})
    # A rule without hosts is reached through the host that asks, and asks all the same.
    free = route(rule("free", "/free", backends=[to("one")]), name="free")
    mine = route(rule("mine", "/x", "/open/*", hosts=[host], backends=[to("one")]), name="mtls")
    world.write("mtls", *secrets, asked, mine, free)
    alice = authority.issue("alice").write(tmp_path)

    async def is_asked_for() -> bool:
        return await over_tls(world, host, "/open/x") == 200 and await over_tls(world, host, "/x", alice) == 200

    await until(is_asked_for)
    assert await over_tls(world, host, "/x") == 400
    assert await over_tls(world, host, "/free") == 400
    assert await over_tls(world, host, "/free", alice) == 200
    assert (await world.stack.get(host, "/x")).status == 400


async def presented(world: World, host: str) -> bytes:
    """Return the certificate that clients are shown, as PEM."""
    port = world.stack.https_port
    _, writer = await asyncio.open_connection("127.0.0.1", port, ssl=unverified(), server_hostname=host)
    found = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
    writer.close()
    return ssl.DER_cert_to_PEM_cert(found).encode()


async def test_a_certificate_comes_is_renewed_and_goes_with_its_secret(world: World) -> None:
    host = "renewed.example"
    first, second, third = SelfSigned(host), SelfSigned(host), SelfSigned(host)

    async def is_presented(*pairs: SelfSigned) -> bool:
        return await presented(world, host) in [pair.certificate_pem for pair in pairs]

    secured = resource("ApisixTls", "renewed", {"hosts": [host], "secret": {"name": "renewed", "namespace": "default"}})
    world.write("renewed", secured)
    world.write("renewed-secret", first.secret("default", "renewed"))
    await until(lambda: is_presented(first))
    world.write("renewed-secret", second.secret("default", "renewed"))
    await until(lambda: is_presented(second))
    world.write("renewed-secret", opaque("renewed", cert=third.certificate_pem, key=third.key_pem))
    await until(lambda: is_presented(third))
    (world.folder / "renewed.yaml").unlink()

    async def is_gone() -> bool:
        return not await is_presented(first, second, third)

    await until(is_gone)


async def test_a_broken_version_leaves_the_last_good_one_in_force(world: World) -> None:
    world.write("kept", route(rule(hosts=["kept.example"], backends=[to("one")]), name="kept"))
    await world.stack.wait_for_answer("kept.example", "/")
    world.write("kept", route(rule("r", "nothing", hosts=["kept.example"]), name="kept"))
    world.write("after", route(rule(hosts=["after.example"], backends=[to("two")]), name="after"))
    await world.stack.wait_for_answer("after.example", "/")
    assert await world.name("kept.example") == "one"


async def test_a_route_of_v1_is_served_as_it_was_published(world: World) -> None:
    backend = {"serviceName": "two", "servicePort": 80}
    spec = {"rules": [{"host": "v1.example", "http": {"paths": [{"path": "/x*", "backend": backend}]}}]}
    world.write("v1", resource("ApisixRoute", "v1", spec, "v1"))
    answer = await world.stack.wait_for_answer("v1.example", "/xyz")
    assert answer.json["name"] == "two"


async def test_objects_of_a_cluster_are_served_and_told_how_they_stand(hands: Hands, tmp_path: Path) -> None:
    async with EchoServer("web", hands.address) as server:
        await hands.apply(bare(service_object("web")))
        await hands.apply(bare(endpoint_slice("web", hands.address, port=server.port)))
        await hands.apply(bare(route(rule(hosts=["cluster.example"]))))
        kubeconfig = hands.write_kubeconfig(tmp_path / "config")
        # A real cluster may have IngressClasses of others.
        environment = {**hands.environment, "HEADGATE_WATCH_WITHOUT_CLASS": "true"}
        async with Stack(kubeconfig=kubeconfig, publish_address="192.0.2.1", environment=environment) as stack:
            await stack.wait_for_answer("cluster.example", "/")

            async def is_programmed() -> bool:
                return (await conditions(hands)).get("Programmed", ("", ""))[0] == "True"

            await until(is_programmed)
            assert (await conditions(hands))["Accepted"] == ("True", "Accepted")
            await hands.apply(bare(route(rule("r", "nothing"))))

            async def is_told() -> bool:
                return (await conditions(hands))["Accepted"] == ("False", "InvalidSpec")

            await until(is_told)
            await hands.delete("apisixroutes", "route")
            await stack.wait_for_answer("cluster.example", "/", 404)
            await check_that_every_kind_is_told(hands)
            await check_that_policies_are_told_of_their_targets(hands)


async def check_that_every_kind_is_told(hands: Hands) -> None:
    """Objects of each kind hear that they are accepted, and an Ingress hears the address."""
    plugins = {"plugins": [headers("X-A", "a")]}
    objects = {
        "apisixupstreams": resource("ApisixUpstream", "web", {"retries": 1}),
        "apisixpluginconfigs": resource("ApisixPluginConfig", "config", plugins),
        "apisixglobalrules": resource("ApisixGlobalRule", "rule", plugins),
        "apisixtlses": resource("ApisixTls", "tls", {"hosts": ["tls.example"], "secret": {"name": "pair"}}),
        "apisixconsumers": resource("ApisixConsumer", "jack", {"authParameter": {"keyAuth": {"value": {"key": "k"}}}}),
    }
    await hands.apply(SelfSigned("tls.example").secret("default", "pair"))
    for manifest in objects.values():
        await hands.apply(bare(manifest))
    await hands.apply(bare(ingress_object("web", host="ingress.example")))

    async def all_are_told() -> bool:
        told = [
            (await conditions(hands, kind, one["metadata"]["name"])).get("Accepted") for kind, one in objects.items()
        ]
        balancer = (await hands.get("ingresses", "web")).get("status", {}).get("loadBalancer")
        return told == [("True", "Accepted")] * len(objects) and balancer == {"ingress": [{"ip": "192.0.2.1"}]}

    await until(all_are_told)


async def check_that_policies_are_told_of_their_targets(hands: Hands) -> None:
    """Policies for the Service and the Ingress `web` hear of these, and of what is not there."""
    service_ref = {"group": "", "kind": "Service", "name": "web"}
    ingress_ref = {"group": "networking.k8s.io", "kind": "Ingress", "name": "web"}
    absent = {**ingress_ref, "name": "absent"}
    for kind, refs in (("BackendTrafficPolicy", [service_ref]), ("HTTPRoutePolicy", [ingress_ref, absent])):
        await hands.apply(bare(resource(kind, "policy", {"targetRefs": refs}, "v1alpha1")))

    async def told(kind: str) -> dict[tuple[str, str], str]:
        entries = (await hands.get(kind, "policy")).get("status", {}).get("ancestors", [])
        return {
            (entry["ancestorRef"]["kind"], entry["ancestorRef"]["name"]): ", ".join(
                f"{one['type']} {one['status']} {one['reason']}" for one in entry["conditions"]
            )
            for entry in entries
            if entry["controllerName"] == "headgate.dev/ingress-controller"
        }

    async def both_are_told() -> bool:
        served = "Accepted True Accepted, Programmed True Programmed"
        expected = {("Ingress", "web"): served, ("Ingress", "absent"): "Accepted False TargetNotFound"}
        of_service = await told("backendtrafficpolicies")
        return of_service == {("Service", "web"): served} and await told("httproutepolicies") == expected

    await until(both_are_told)


def bare(manifest: Any) -> Any:
    """A manifest as somebody applies it."""
    metadata = {key: value for key, value in manifest["metadata"].items() if key != "uid"}
    return {**manifest, "metadata": metadata}


async def conditions(hands: Hands, kind: str = "apisixroutes", name: str = "route") -> dict[str, tuple[str, str]]:
    found = (await hands.get(kind, name)).get("status", {}).get("conditions", [])
    return {each["type"]: (each["status"], each["reason"]) for each in found}
