"""The scenarios of the Kubernetes ingress controller conformance suite, against the whole stack.

The suite (kubernetes-sigs/ingress-controller-conformance) has 30: six for the default backend, six for host rules,
one for the class, one for balancing, sixteen for paths. Here the API server is the fake one (in tests/cluster a real
one) and the pods are echo servers on this machine; everything between is what a user runs: watcher, log, translator,
store and gateway as processes.
"""

import json
import ssl
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from typing import Any, NamedTuple

import aiohttp
import pytest
import pytest_asyncio

from fakes.gateway.tls import SelfSigned
from fakes.kubernetes.hands import Hands
from fakes.peers.echo import EchoServer
from fakes.stack import Stack
from fakes.waiting import until

JSON = dict[str, Any]
SERVICES = (
    "echo-service",
    "foo-bar-com",
    "wildcard-foo-com",
    "foo-exact",
    "foo-prefix",
    "aaa-prefix",
    "aaa-slash-bbb-prefix",
    "aaa-slash-bbb-slash-prefix",
    "foo-slash-exact",
    "mixed-prefix",
    "mixed-exact",
)
TLS_HOST = "foo.bar.com"


class Cluster(NamedTuple):
    """The stack under test and what it was given."""

    stack: Stack
    hands: Hands
    certificate: SelfSigned


class Answer(NamedTuple):
    status: int
    headers: Any
    origin: JSON


def service(name: str) -> JSON:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"ports": [{"name": "http", "port": 8080, "targetPort": 3000}]},
    }


def endpoint_slice(name: str, address: str, port: int) -> JSON:
    """Pods share one address here, so each has a slice of its own port."""
    return {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {
            "name": f"{name}-{port}",
            "namespace": "default",
            "labels": {"kubernetes.io/service-name": name},
        },
        "addressType": "IPv4",
        "ports": [{"name": "http", "port": port, "protocol": "TCP"}],
        "endpoints": [{"addresses": [address], "conditions": {"ready": True}}],
    }


def ingress(name: str, spec: JSON) -> JSON:
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "Ingress",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"ingressClassName": "conformance"} | spec,
    }


def backend(name: str, port: int | str = 8080) -> JSON:
    return {"service": {"name": name, "port": {"name": port} if isinstance(port, str) else {"number": port}}}


def path(value: str, path_type: str, to: str, port: int | str = 8080) -> JSON:
    return {"path": value, "pathType": path_type, "backend": backend(to, port)}


def rule(host: str, *paths: JSON) -> JSON:
    return {"host": host, "http": {"paths": list(paths)}}


DEFAULT_BACKEND = ingress("default-backend", {"defaultBackend": backend("echo-service")})
INGRESSES = (
    ingress(
        "host-rules",
        {
            "tls": [{"hosts": [TLS_HOST], "secretName": "conformance-tls"}],
            "rules": [
                rule("*.foo.com", path("/", "Prefix", "wildcard-foo-com")),
                rule(TLS_HOST, path("/", "Prefix", "foo-bar-com", "http")),
            ],
        },
    ),
    ingress(
        "path-rules",
        {
            "rules": [
                rule("exact-path-rules", path("/foo", "Exact", "foo-exact")),
                rule("prefix-path-rules", path("/foo", "Prefix", "foo-prefix")),
                rule(
                    "prefix-path-rules-nested",
                    path("/aaa/bbb", "Prefix", "aaa-slash-bbb-prefix"),
                    path("/aaa", "Prefix", "aaa-prefix"),
                ),
                rule(
                    "mixed-path-rules",
                    path("/foo", "Prefix", "mixed-prefix"),
                    path("/foo", "Exact", "mixed-exact"),
                ),
                rule("trailing-slash-prefix", path("/aaa/bbb/", "Prefix", "aaa-slash-bbb-slash-prefix")),
                rule("trailing-slash-exact", path("/foo/", "Exact", "foo-slash-exact")),
            ]
        },
    ),
)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def cluster(hands: Hands, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Cluster]:
    folder = tmp_path_factory.mktemp("conformance")
    async with AsyncExitStack() as resources:
        for name in SERVICES:
            await hands.apply(service(name))
            for pod in range(10 if name == "echo-service" else 1):
                echo = await resources.enter_async_context(EchoServer(f"{name}-{pod}", hands.address))
                await hands.apply(endpoint_slice(name, hands.address, echo.port))
        certificate = SelfSigned(TLS_HOST)
        await hands.apply(
            {
                "apiVersion": "networking.k8s.io/v1",
                "kind": "IngressClass",
                "metadata": {"name": "conformance"},
                "spec": {"controller": "headgate.dev/ingress-controller"},
            }
        )
        await hands.apply(certificate.secret("default", "conformance-tls"))
        for item in INGRESSES:
            await hands.apply(item)
        stack = await resources.enter_async_context(
            Stack(
                data_dir=folder / "data",
                kubeconfig=hands.write_kubeconfig(folder / "kubeconfig"),
                publish_address="127.0.0.1",
                environment=hands.environment,
            )
        )
        await stack.wait_for_answer(TLS_HOST, "/")
        yield Cluster(stack, hands, certificate)


async def call(
    cluster: Cluster, host: str, target: str, method: str = "GET", *, tls: ssl.SSLContext | None = None
) -> Answer:
    """Make one request as the suite does: Host and SNI set by hand, its user agent."""
    scheme, port = ("https", cluster.stack.https_port) if tls else ("http", cluster.stack.http_port)
    headers = {"User-Agent": "Go-http-client/1.1"} | ({"Host": host} if host else {})
    async with (
        aiohttp.ClientSession() as session,
        session.request(
            method,
            f"{scheme}://127.0.0.1:{port}{target}",
            headers=headers,
            ssl=tls or True,
            server_hostname=host if tls else None,
        ) as response,
    ):
        content = await response.read()
        is_from_origin = response.status == 200 and response.content_type == "application/json"
        return Answer(response.status, response.headers, json.loads(content) if is_from_origin else {})


pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="class", loop_scope="module")
async def default_backend(cluster: Cluster) -> AsyncIterator[None]:
    await cluster.hands.apply(DEFAULT_BACKEND)
    await cluster.stack.wait_for_answer("my-host", "/", status=200)
    yield
    await cluster.hands.delete("ingresses", "default-backend")
    await cluster.stack.wait_for_answer("my-host", "/", status=404)


@pytest.mark.usefixtures("default_backend")
class TestDefaultBackend:
    """Features default_backend and load_balancing: an Ingress with nothing but a default backend."""

    @pytest.mark.parametrize(
        ("method", "host", "target"),
        [
            ("GET", "my-host", "/"),
            ("GET", "my-host", "/sub-path"),
            ("POST", "some-host", "/"),
            ("PUT", "", "/resource"),
            ("DELETE", "some-host", "/resource"),
            ("PATCH", "my-host", "/resource"),
        ],
    )
    async def test_takes_what_no_rule_takes(self, cluster: Cluster, method: str, host: str, target: str) -> None:
        answer = await call(cluster, host, target, method)
        assert answer.status == 200
        assert {"Content-Length", "Content-Type", "Date", "Server"} <= set(answer.headers)
        assert answer.origin["name"].startswith("echo-service-")
        assert (answer.origin["method"], answer.origin["path"], answer.origin["proto"]) == (method, target, "HTTP/1.1")
        assert answer.origin["headers"]["User-Agent"] == ["Go-http-client/1.1"]

    async def test_hundred_requests_reach_all_ten_pods(self, cluster: Cluster) -> None:
        answers = [await call(cluster, "my-host", "/") for _ in range(100)]
        assert {answer.status for answer in answers} == {200}
        assert len({answer.origin["name"] for answer in answers}) == 10


async def test_host_rule_serves_its_certificate_over_https(cluster: Cluster) -> None:
    answer = await call(cluster, TLS_HOST, "/", tls=cluster.certificate.client_context())
    assert (answer.status, answer.origin["name"]) == (200, "foo-bar-com-0")
    assert answer.origin["host"] == TLS_HOST


@pytest.mark.parametrize(
    ("host", "pod"),
    [
        (TLS_HOST, "foo-bar-com-0"),
        ("subdomain.bar.com", None),
        ("bar.foo.com", "wildcard-foo-com-0"),
        ("baz.bar.foo.com", None),
        ("foo.com", None),
    ],
)
async def test_host_rules(cluster: Cluster, host: str, pod: str | None) -> None:
    answer = await call(cluster, host, "/")
    assert (answer.status, answer.origin.get("name")) == (200 if pod else 404, pod)


async def test_ingress_of_an_unknown_class_gets_no_status(cluster: Cluster) -> None:
    """The original waits five minutes; here the Ingress is followed by one of ours, whose status comes after."""
    stranger = ingress(
        "stranger", {"ingressClassName": "some-invalid-class-name", "defaultBackend": backend("foo-exact")}
    )
    ours = ingress("after-stranger", {"rules": [rule("after-stranger", path("/", "Prefix", "foo-exact"))]})
    await cluster.hands.apply(stranger)
    await cluster.hands.apply(ours)

    async def is_told() -> bool:
        return await addresses_of(cluster, "after-stranger") == [{"ip": "127.0.0.1"}]

    await until(is_told)
    assert await addresses_of(cluster, "stranger") == []
    assert (await call(cluster, "some-host", "/")).status == 404


@pytest.mark.parametrize(
    ("host", "target", "pod"),
    [
        ("exact-path-rules", "/foo", "foo-exact-0"),
        ("exact-path-rules", "/foo/", None),
        ("exact-path-rules", "/FOO", None),
        ("exact-path-rules", "/bar", None),
        ("prefix-path-rules", "/foo", "foo-prefix-0"),
        ("prefix-path-rules", "/foo/", "foo-prefix-0"),
        ("prefix-path-rules", "/foo/bar", "foo-prefix-0"),
        ("prefix-path-rules", "/FOO", None),
        ("prefix-path-rules-nested", "/aaa/bbb", "aaa-slash-bbb-prefix-0"),
        ("prefix-path-rules-nested", "/aaa/bbb/ccc", "aaa-slash-bbb-prefix-0"),
        ("prefix-path-rules-nested", "/aaa/ccc", "aaa-prefix-0"),
        ("prefix-path-rules-nested", "/aaaccc", None),
        ("mixed-path-rules", "/foo", "mixed-exact-0"),
        ("trailing-slash-prefix", "/aaa/bbb", "aaa-slash-bbb-slash-prefix-0"),
        ("trailing-slash-prefix", "/aaa/bbb/", "aaa-slash-bbb-slash-prefix-0"),
        ("trailing-slash-exact", "/foo", None),
    ],
)
async def test_path_rules(cluster: Cluster, host: str, target: str, pod: str | None) -> None:
    answer = await call(cluster, host, target)
    assert (answer.status, answer.origin.get("name")) == (200 if pod else 404, pod)


async def addresses_of(cluster: Cluster, name: str) -> list[JSON]:
    found = await cluster.hands.get("ingresses", name)
    balancer: JSON = found.get("status", {}).get("loadBalancer", {})
    entries: list[JSON] = balancer.get("ingress", [])
    return entries
