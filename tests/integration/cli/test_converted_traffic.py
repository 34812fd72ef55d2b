"""What `headgate convert` writes serves what it read: the same requests get the same answers from both."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from fakes.gateway.proxied import Conversation
from fakes.gateway.served import Got
from fakes.translator.applied import World, world
from fakes.translator.deltas import service
from headgate.cli.__main__ import main
from headgate.translator.world.settings import TranslationSettings

OURS = TranslationSettings(watch_without_class=True)
NGINX = "nginx.ingress.kubernetes.io"


def echoing(name: str) -> Any:
    """Script: answer with the name of the server, and what it was asked."""

    async def script(conversation: Conversation) -> None:
        while True:
            head, _ = await conversation.request()
            lines = [line for line in head.decode().split("\r\n") if not line.lower().startswith(_OF_OURS)]
            body = f"{name}\n{chr(10).join(sorted(lines))}".encode()
            await conversation.send(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))

    return script


_OF_OURS = (
    *("x-request-id", "traceparent", "x-scheme", "x-forwarded-scheme", "x-original-"),
    *("x-forwarded-port", "x-forwarded-server", "x-real-ip"),
)
"""Headers that differ with each request, and those of ingress-nginx and Traefik, which comments of conversions name."""


def ingress(*paths: tuple[str, str], name: str = "web", host: str = "a.example", **annotations: str) -> Any:
    rules = [
        {"path": path, "pathType": "Prefix", "backend": {"service": {"name": to, "port": {"name": "http"}}}}
        for path, to in paths
    ]
    written = {f"{NGINX}/{key.replace('_', '-')}": value for key, value in annotations.items()}
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "Ingress",
        "metadata": {"name": name, "namespace": "default", "annotations": written},
        "spec": {"rules": [{"host": host, "http": {"paths": rules}}]},
    }


def apisix(*rules: Any) -> Any:
    return {
        "apiVersion": "apisix.apache.org/v2",
        "kind": "ApisixRoute",
        "metadata": {"name": "shop", "namespace": "default"},
        "spec": {"http": [{"name": f"r{index}", **rule} for index, rule in enumerate(rules)]},
    }


def traefik(*routes: tuple[str, str], middlewares: tuple[str, ...] = ()) -> Any:
    named = [{"name": each} for each in middlewares]
    return {
        "apiVersion": "traefik.io/v1alpha1",
        "kind": "IngressRoute",
        "metadata": {"name": "shop", "namespace": "default"},
        "spec": {
            "routes": [
                {"match": match, "kind": "Rule", "middlewares": named, "services": [{"name": to, "port": 80}]}
                for match, to in routes
            ]
        },
    }


def middleware(name: str, **spec: Any) -> Any:
    metadata = {"name": name, "namespace": "default"}
    return {"apiVersion": "traefik.io/v1alpha1", "kind": "Middleware", "metadata": metadata, "spec": spec}


CASES: dict[str, tuple[list[Any], list[tuple[str, dict[str, str]]]]] = {
    "paths of an Ingress": (
        [ingress(("/", "one"), ("/api", "two"))],
        [("/", {}), ("/api", {}), ("/api/x?q=1", {}), ("/apix", {})],
    ),
    "rewrites by patterns": (
        [ingress(("/v1(/|$)(.*)", "one"), ("/other", "two"), rewrite_target="/$2")],
        [("/v1", {}), ("/v1/a/b?c=d", {}), ("/V1/a", {}), ("/other/a", {}), ("/none", {})],
    ),
    "headers, limits and networks": (
        [ingress(("/", "one"), enable_cors="true", x_forwarded_prefix="/p", denylist_source_range="10.0.0.0/8")],
        [("/", {"Origin": "https://x.test"}), ("/", {})],
    ),
    "a closed door": ([ingress(("/", "one"), whitelist_source_range="10.0.0.0/8")], [("/", {}), ("/a", {})]),
    "redirects": (
        [
            ingress(("/", "one"), host="a.example", permanent_redirect="https://new.test/x"),
            ingress(("/", "one"), name="app", host="b.example", app_root="/app"),
        ],
        [("/a?b=c", {}), ("/", {"host": "b.example"}), ("/x", {"host": "b.example"})],
    ),
    "canaries": (
        [
            ingress(("/", "one")),
            ingress(("/", "two"), name="canary", canary="true", canary_by_header="x-new", canary_by_header_value="yes"),
        ],
        [("/", {}), ("/", {"X_New": "yes"}), ("/", {"X_New": "no"})],
    ),
    "conditions of an ApisixRoute": (
        [
            apisix(
                {
                    "match": {
                        "hosts": ["a.example"],
                        "paths": ["/*"],
                        "exprs": [{"subject": {"scope": "Query", "name": "v"}, "op": "Equal", "value": "2"}],
                    },
                    "priority": 1,
                    "backends": [{"serviceName": "two", "servicePort": 80}],
                },
                {
                    "match": {"hosts": ["a.example"], "paths": ["/*"]},
                    "backends": [{"serviceName": "one", "servicePort": 80}],
                    "plugins": [
                        {"name": "proxy-rewrite", "enable": True, "config": {"headers": {"set": {"X-Set": "1"}}}},
                        {
                            "name": "response-rewrite",
                            "enable": True,
                            "config": {"headers": {"set": {"X-Said": "$host"}}},
                        },
                    ],
                },
            )
        ],
        [("/", {}), ("/a?v=2", {}), ("/a?v=3", {}), ("/a", {"X_Set": "0"})],
    ),
    "rules of an IngressRoute": (
        [
            traefik(
                ("Host(`a.example`) && PathPrefix(`/api`)", "two"),
                ("Host(`a.example`) && Header(`X-Kind`, `b`)", "two"),
                ("Host(`a.example`)", "one"),
                middlewares=("cut", "marked"),
            ),
            middleware("cut", stripPrefix={"prefixes": ["/api"]}),
            middleware("marked", headers={"customRequestHeaders": {"X-Mark": "1"}}),
        ],
        [("/", {}), ("/api", {}), ("/apix/y", {}), ("/z", {"X_Kind": "b"}), ("/z", {"X_Kind": "c"})],
    ),
}


@pytest.mark.parametrize("case", CASES)
async def test_the_same_requests_get_the_same_answers(
    case: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    objects, requests = CASES[case]
    async with world(settings=OURS, one=echoing("one"), two=echoing("two")) as made:
        made.proxy.apply(*objects)
        before = await answers(made, requests)
        written = convert(objects, tmp_path, capsys)
        made.proxy.delete(*objects)
        assert await statuses(made, requests) == [404] * len(requests)
        made.proxy.apply(*written)
        assert await answers(made, requests) == before
        assert any(status != 404 for status, *_ in before)


def convert(objects: list[Any], folder: Path, capsys: pytest.CaptureFixture[str]) -> list[Any]:
    """Return what the command writes."""
    (folder / "read.yaml").write_text(yaml.safe_dump_all([*objects, service("one"), service("two")]))
    main(["convert", str(folder), "--watch-without-class"])
    return list(yaml.safe_load_all(capsys.readouterr().out))


async def answers(made: World, requests: list[tuple[str, dict[str, str]]]) -> list[tuple[int, str, list[str]]]:
    """Return what requests get: status, body and headers."""
    found = []
    for path, headers in requests:
        got = await made.proxy.get(path, **headers)
        found.append((got.status, got.body.decode(), kept(got)))
    return found


async def statuses(made: World, requests: list[tuple[str, dict[str, str]]]) -> list[int]:
    return [status for status, *_ in await answers(made, requests)]


def kept(got: Got) -> list[str]:
    lines = got.head.decode("latin-1").split("\r\n")
    return sorted(line for line in lines if not line.lower().startswith(("date:", "x-request-id:")))
