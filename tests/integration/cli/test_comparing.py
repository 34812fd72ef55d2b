"""`headgate audit --compare`: the same requests to two gateways."""

import asyncio
import json
from pathlib import Path

import pytest

from fakes.gateway.proxied import Conversation, Origin
from headgate.cli.__main__ import main
from headgate.cli.comparing.requests import example, recorded
from headgate.cli.terminal.errors import UsageMistake
from headgate.common.table import PathMatch, PathType

INGRESS = """\
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata:
  name: web
  annotations: {nginx.ingress.kubernetes.io/enable-cors: "true", nginx.ingress.kubernetes.io/app-root: /home}
spec:
  ingressClassName: theirs
  rules:
    - host: a.example
      http:
        paths: [{path: /shop, pathType: Prefix, backend: {service: {name: web, port: {number: 80}}}}]
"""


def gateway(cors: bytes, missing: bytes = b"200 OK") -> Origin:
    """A server that answers as a gateway might."""

    async def script(conversation: Conversation) -> None:
        while True:
            head = await conversation.head()
            status = missing if b"compare" in head.split(b"\r\n")[0] else b"200 OK"
            await conversation.send(
                b"HTTP/1.1 %b\r\nDate: x\r\nContent-Type: text/plain\r\n%bContent-Length: 2\r\n\r\nok" % (status, cors)
            )

    return Origin(script)


async def run(tmp_path: Path, old: Origin, new: Origin, *more: str) -> int:
    path = tmp_path / "web.yaml"
    path.write_text(INGRESS)
    await old.start()
    await new.start()
    flags = ["--compare", f"http://127.0.0.1:{old.port}", "--with", f"http://127.0.0.1:{new.port}"]
    try:
        return int(await asyncio.to_thread(main, ["audit", str(path), *flags, *more]))
    finally:
        await asyncio.gather(old.stop(), new.stop())


async def test_gateways_that_answer_alike_differ_in_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    old, new = gateway(b""), gateway(b"Server: other\r\n")
    assert await run(tmp_path, old, new) == 0
    assert "to both: 0 answered differently" in capsys.readouterr().out
    asked = sorted(head.split(b"\r\n")[0] for head in old.heads)
    targets = b"/", b"/compare", b"/shop", b"/shop/compare"
    assert asked == [b"GET %b HTTP/1.1" % target for target in targets]
    assert all(b"\r\nHost: a.example\r\n" in head for head in [*old.heads, *new.heads])


async def test_what_differs_is_named_with_the_annotation_that_probably_is_why(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    old = gateway(b"Access-Control-Allow-Origin: *\r\n")
    new = gateway(b"", missing=b"404 Not Found")
    assert await run(tmp_path, old, new, "--json") == 1
    document = json.loads(capsys.readouterr().out)
    found = {(one["request"], one["what"]): one for one in document["differences"]}
    assert found.keys() == {
        ("GET a.example/", "header access-control-allow-origin"),
        ("GET a.example/compare", "status"),
        ("GET a.example/shop", "header access-control-allow-origin"),
        ("GET a.example/shop/compare", "status"),
    }
    cors = found["GET a.example/shop", "header access-control-allow-origin"]
    assert (cors["old"], cors["new"], cors["object"]) == ("*", "-", "Ingress default/web")
    assert cors["why"] == ["nginx.ingress.kubernetes.io/enable-cors"]
    missing = found["GET a.example/shop/compare", "status"]
    assert (missing["old"], missing["new"]) == ("200", "404")


async def test_a_gateway_that_does_not_answer_is_a_difference(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async def hangs_up(conversation: Conversation) -> None:
        await conversation.request()

    assert await run(tmp_path, gateway(b""), Origin(hangs_up)) == 1
    assert "no answer: " in capsys.readouterr().out


async def test_recorded_requests_are_sent_instead(tmp_path: Path) -> None:
    record = tmp_path / "access.log"
    record.write_text(
        '10.0.0.1 - - [01/Jan/2026:00:00:00 +0000] "GET /a?b=c HTTP/1.1" 200 2 "-" "curl"\n'
        '10.0.0.1 - - [01/Jan/2026:00:00:00 +0000] "POST /a HTTP/1.1" 200 2 "-" "curl"\nnonsense\n'
    )
    old, new = gateway(b""), gateway(b"")
    assert await run(tmp_path, old, new, "--requests", str(record), "--host", "b.example") == 0
    assert [head.split(b"\r\n")[0] for head in old.heads] == [b"GET /a?b=c HTTP/1.1"]
    assert b"\r\nHost: b.example\r\n" in new.heads[0]


def test_a_log_without_a_host_and_one_gateway_alone_are_mistakes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(UsageMistake, match="give --host NAME"):
        recorded(['"GET / HTTP/1.1" 200'], "")
    assert [str(one) for one in recorded(["GET http://a.example/x?y", "DELETE http://a.example/"], "")] == [
        "GET a.example/x?y"
    ]
    assert main(["audit", "--compare", "http://127.0.0.1:1"]) == 2
    assert "belong together" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("pattern", "path"),
    [
        ("/something(/|$)(.*)", "/something"),
        ("/api/v[0-9]+", "/api/v1"),
        ("/a|/b", "/a"),
        ("/(?:x|y)z", None),
        ("/docs", "/docs"),
    ],
)
def test_a_path_for_a_pattern(pattern: str, path: str | None) -> None:
    assert example(PathMatch(type=PathType.REGEX, value=pattern, ignore_case=True)) == path
