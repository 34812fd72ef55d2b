"""`headgate explain` on manifests and against a gateway's admin site."""

import asyncio
import json
import re
from pathlib import Path

import pytest
import yaml
from aiohttp import web

from fakes.translator.apisix import route, rule
from fakes.translator.deltas import endpoint_slice, ingress, service
from headgate.cli.__main__ import main
from headgate.cli.commands.explain import print_explanation
from headgate.cli.up.data_dir import locked, write_state
from headgate.gateway.table.explaining.explanation import Explanation
from headgate.operations.status.up_state import UpState

QUICKSTART = str(Path(__file__).parents[3] / "examples" / "quickstart")


def test_the_winner_and_why_the_others_lost_are_shown(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "GET", "http://demo.localhost/red", "--manifests", QUICKSTART]) == 0
    shown = capsys.readouterr().out
    assert "wins  demo.localhost  prefix  /red  takes the path" in shown
    assert "is longer" in shown
    assert "127.0.0.1:9101 ready" in shown


def test_a_host_header_goes_before_the_host_of_the_url(capsys: pytest.CaptureFixture[str]) -> None:
    request = ["GET", "http://127.0.0.1:8080/red", "-H", "Host: demo.localhost"]
    assert main(["explain", *request, "--manifests", QUICKSTART]) == 0
    assert "GET demo.localhost/red" in capsys.readouterr().out


def test_a_path_is_shown_as_it_is_read_and_forwarded(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = ["explain", "GET", "http://demo.localhost/a/../red//x", "--manifests", QUICKSTART]
    assert main(asked) == 1
    assert "400: path that servers read in different ways (path_normalization rewrite)" in capsys.readouterr().out
    monkeypatch.setenv("HEADGATE_PATH_NORMALIZATION", "match")
    assert main(asked) == 0
    shown = capsys.readouterr().out.splitlines()
    assert shown[0] == "GET demo.localhost/a/../red//x   (table manifests)"
    assert shown[1] == "read as /red/x, forwarded as /a/../red//x"


def test_an_unknown_host_is_exit_code_1(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "GET", "http://nobody.example/", "--manifests", QUICKSTART]) == 1
    assert "404: no virtual host takes 'nobody.example'" in capsys.readouterr().out


def test_json_is_the_whole_explanation(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "GET", "demo.localhost/red", "--manifests", QUICKSTART, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["virtual_host"] == "demo.localhost"
    assert document["candidates"][0]["wins"] is True


def test_nobody_at_the_admin_address_is_exit_code_3_and_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "GET", "http://x/", "--admin-url", "http://127.0.0.1:1"]) == 3
    shown = capsys.readouterr().err
    assert shown.startswith("headgate: no gateway answers at http://127.0.0.1:1: start one")
    assert shown.count("\n") == 1


def test_the_gateway_of_a_running_up_is_asked_wherever_its_admin_site_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    state = UpState(
        pid=1, nats_url="nats://127.0.0.1:1", admin_url="http://127.0.0.1:2", http_port=3, https_port=4, processes={}
    )
    with locked(tmp_path):
        write_state(tmp_path, state)
        assert main(["explain", "GET", "http://x/", f"--data-dir={tmp_path}"]) == 3
    assert capsys.readouterr().err.startswith("headgate: no gateway answers at http://127.0.0.1:2: start one")


async def test_a_running_gateway_is_asked_for_its_explanation(capsys: pytest.CaptureFixture[str]) -> None:
    asked = []

    async def explain(request: web.Request) -> web.Response:
        asked.append(list(request.query.items()))
        return web.json_response(
            {
                "version": "1.7",
                "method": "GET",
                "host": "a.example",
                "path": "/",
                "virtual_host": None,
                "winner": None,
                "verdict": "404: no virtual host takes it",
                "candidates": [],
            }
        )

    app = web.Application()
    app.router.add_get("/explain", explain)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    more = ["-H", "X: y", "-H", "X: z", "--client", "192.0.2.1", "-d", "a=b"]
    code = await asyncio.to_thread(main, ["explain", "GET", "a.example/?q=1", *more, "--admin-url", url])
    await runner.cleanup()
    assert code == 1
    told = [("header", "X: y"), ("header", "X: z"), ("client", "192.0.2.1"), ("body", "a=b")]
    assert asked == [[("method", "GET"), ("url", "http://a.example/?q=1"), *told]]
    assert "(table 1.7)" in capsys.readouterr().out


FAILED = {
    **{"at": 1.0, "method": "GET", "host": "a.example", "path": "/cart", "status": 502, "seconds": 0.5, "sent": 3},
    **{"client": "192.0.2.1", "request_id": "id-1", "route": "a.example|a/b", "upstream": "up"},
    **{"endpoint": "10.0.0.1:80", "reason": "upstream closed the connection"},
    "attempts": [
        {"endpoint": "10.0.0.2:80", "outcome": "connect", "after_s": 0.1},
        {"endpoint": "10.0.0.1:80", "outcome": "503", "after_s": 0.2},
    ],
}


async def explain_past(request_id: str, *more: str, **said: str) -> tuple[int, list[list[tuple[str, str]]]]:
    """Explain a request that a console may know, and the gateway now answers; with what the gateway was asked."""
    asked = []

    async def explain(request: web.Request) -> web.Response:
        asked.append(list(request.query.items()))
        found = {"version": "1.7", "method": "GET", "host": "a.example", "path": "/cart", "virtual_host": None}
        return web.json_response({**found, "winner": None, "verdict": "404: no route", "candidates": []})

    async def failed(request: web.Request) -> web.Response:
        items = [FAILED | said] if request.query["request_id"] == "id-1" else []
        return web.json_response({"items": items, "total": len(items), "next": None})

    app = web.Application()
    app.router.add_get("/explain", explain)
    app.router.add_get("/api/v1/failed", failed)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    words = ["explain", "--request-id", request_id, "--server", url, "--admin-url", url, *more]
    try:
        return await asyncio.to_thread(main, words), asked
    finally:
        await runner.cleanup()


async def test_a_request_of_the_past_is_explained_by_its_id(capsys: pytest.CaptureFixture[str]) -> None:
    _, asked = await explain_past("id-1")
    assert asked == [[("method", "GET"), ("url", "http://a.example/cart"), ("client", "192.0.2.1")]]
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("GET a.example/cart   (id-1, ")
    assert lines[1:6] == [
        "from 192.0.2.1 to a.example|a/b",
        "  attempt 1: 10.0.0.2:80 did not take the connection, 100.0 ms after the request came",
        "  attempt 2: 10.0.0.1:80 answered 503, 200.0 ms after the request came",
        "502 from the gateway, after 0.500 s",
        "because upstream closed the connection",
    ]
    assert lines[8:10] == ["GET a.example/cart   (table 1.7)", "404: no route"]
    await explain_past("id-1", "--json")
    assert json.loads(capsys.readouterr().out)["request"] == FAILED


async def test_a_request_of_the_past_is_explained_by_its_scheme() -> None:
    _, [asked] = await explain_past("id-1", scheme="https")
    assert asked[1] == ("url", "https://a.example/cart")


async def test_what_became_of_a_request_is_said_without_a_gateway_too(capsys: pytest.CaptureFixture[str]) -> None:
    code, asked = await explain_past("id-1", "--admin-url", "http://127.0.0.1:9")
    told = capsys.readouterr()
    assert (code, asked) == (3, [])
    assert "502 from the gateway, after 0.500 s" in told.out
    assert "no gateway answers at http://127.0.0.1:9" in told.err


async def test_a_request_that_the_console_does_not_know(capsys: pytest.CaptureFixture[str]) -> None:
    code, asked = await explain_past("id-2")
    assert (code, asked) == (1, [])
    assert "headgate tail --request-id id-2" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "headgate explain METHOD URL, or --request-id ID"),
        (("GET",), "headgate explain METHOD URL, or --request-id ID"),
        (("GET", "http://x/", "--request-id=a"), "leave METHOD, URL and --manifests out"),
        (("--request-id=a", "--server=nowhere"), "'nowhere' is not a URL"),
    ],
)
def test_a_question_without_a_request(
    words: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert main(["explain", *words, f"--data-dir={tmp_path}"]) == 2
    assert said in capsys.readouterr().err


def test_without_a_console_requests_have_no_ids(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["explain", "--request-id=a", f"--data-dir={tmp_path}"]) == 2
    assert "needs a console" in capsys.readouterr().err


def test_endpoints_are_told_apart_by_what_differs(capsys: pytest.CaptureFixture[str]) -> None:
    near = {"address": "10.0.0.1", "port": 80, "weight": 1, "cluster": "east", "state": "ready", "gets_requests": True}
    far = {**near, "address": "192.0.2.1", "cluster": "west", "hop": "https", "priority": 1, "weight": 3}
    backend = {"upstream": "up", "weight": 1, "share": 1.0, "endpoints": [near, far]}
    asked = {"version": "1.7", "method": "GET", "host": "a", "path": "/", "virtual_host": "a", "winner": "a|/"}
    print_explanation(Explanation.model_validate({**asked, "verdict": "-", "candidates": [], "backends": [backend]}))
    assert capsys.readouterr().out.splitlines()[-2:] == [
        "  10.0.0.1:80 ready, cluster east, weight 1, priority 0",
        "  192.0.2.1:80 ready, https gateway of west, weight 3, priority 1",
    ]


def test_objects_in_files_are_named_as_a_gateway_names_them(capsys: pytest.CaptureFixture[str]) -> None:
    main(["explain", "GET", "demo.localhost/red", "--manifests", QUICKSTART, "--json"])
    upstream = json.loads(capsys.readouterr().out)["backends"][0]["upstream"]
    assert upstream.startswith("local/default/")


def test_what_was_refused_at_the_host_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    owner = ingress("shop", host="a.example", namespace="team-a", created="2020-01-01T00:00:00Z")
    guest = ingress("guest", host="a.example", namespace="team-b", created="2026-01-01T00:00:00Z")
    file = tmp_path / "two.yaml"
    file.write_text(yaml.safe_dump_all([owner, guest, service(namespace="team-a"), service(namespace="team-b")]))
    main(["explain", "GET", "http://a.example/", "--manifests", str(file)])
    lost = (
        "Ingress team-b/guest: its route a.example/ is not served: spec.rules[0].http.paths[0].path: host a.example is"
    )
    assert lost in capsys.readouterr().out
    main(["explain", "GET", "http://b.example/", "--manifests", str(file)])
    assert "HostNotOwned" not in capsys.readouterr().out


def plugged(tmp_path: Path, *plugins: dict[str, object], host: str = "a.example") -> str:
    """Write a route with plugins, and return the file."""
    backend = {"serviceName": "web", "servicePort": 80}
    rule = {"name": "r", "match": {"hosts": [host], "paths": ["/*"]}, "backends": [backend], "plugins": list(plugins)}
    route = {
        "apiVersion": "apisix.apache.org/v2",
        "kind": "ApisixRoute",
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {"ingressClassName": "headgate", "http": [rule]},
    }
    klass = {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "IngressClass",
        "metadata": {"name": "headgate"},
        "spec": {"controller": "headgate.dev/ingress-controller"},
    }
    file = tmp_path / "plugged.yaml"
    file.write_text(yaml.safe_dump_all([klass, route, service(), endpoint_slice("web", "192.0.2.9")]))
    return str(file)


INSIDE = {"name": "ip-restriction", "enable": True, "config": {"whitelist": ["10.0.0.0/8"]}}
KEYS = {"name": "key-auth", "enable": True, "config": {}}
AGENTS = {"name": "ua-restriction", "enable": True, "config": {"denylist": ["curl.*"]}}
COUNTED = {"name": "limit-count", "enable": True, "config": {"count": 1, "time_window": 1}}
BODY = {
    "name": "request-validation",
    "enable": True,
    "config": {"body_schema": {"type": "object", "required": ["id"]}},
}


@pytest.mark.parametrize(
    ("plugin", "flags", "code", "row"),
    [
        (INSIDE, ["--client=192.0.2.1"], 1, r"ip-restriction  answers 403  Your IP address is not allowed"),
        (INSIDE, ["--client=10.1.2.3"], 0, r"ip-restriction  passes "),
        (INSIDE, [], 0, r"ip-restriction  unknown  give --client ADDRESS"),
        (AGENTS, ["-H", "User-Agent: curl/8"], 1, r"ua-restriction  answers 403"),
        (AGENTS, ["-H", "User-Agent: Firefox"], 0, r"ua-restriction  passes"),
        (KEYS, [], 1, r"key-auth  answers 401  Missing API key in request"),
        (KEYS, ["-H", "apikey: k"], 0, r"key-auth  unknown  consumers are known to gateways only: ask one"),
        (COUNTED, [], 0, r"limit-count  unknown  counts requests"),
        (BODY, ["--data={}", "-H", "Content-Type: application/json"], 1, r"request-validation  answers 400"),
        (BODY, ['--data={"id":1}', "-H", "Content-Type: application/json"], 0, r"request-validation  passes"),
        (
            {"name": "redirect", "enable": True, "config": {"uri": "/new", "ret_code": 301}},
            [],
            0,
            r"redirect  answers 301  redirected to /new",
        ),
        ({"name": "gzip", "enable": True, "config": {}}, [], 0, r"gzip    passes   looks at answers only"),
    ],
)
def test_each_plugin_has_a_verdict_and_the_exit_code_follows(
    plugin: dict[str, object],
    flags: list[str],
    code: int,
    row: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    asked = ["explain", "GET", "http://a.example/", "--manifests", plugged(tmp_path, plugin), *flags]
    assert main(asked) == code, capsys.readouterr()
    assert re.search(f"^{row}", capsys.readouterr().out, re.MULTILINE)


def test_plugins_are_asked_in_their_order_and_hear_of_those_before(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    told = {"source": "http_x_client", "trusted_addresses": ["192.0.2.0/24"]}
    trusting = {"name": "real-ip", "enable": True, "config": told}
    file = plugged(tmp_path, KEYS, INSIDE, trusting)
    asked = ["explain", "GET", "http://a.example/", "--manifests", file, "--client=192.0.2.1"]
    assert main([*asked, "-H", "X-Client: 10.0.0.9", "-H", "apikey: k"]) == 0
    rows = [line.split()[:2] for line in capsys.readouterr().out.splitlines()]
    first = rows.index(["PLUGIN", "VERDICT"])
    # ip-restriction waits for the consumer, as in traffic.
    assert rows[first + 1 : first + 4] == [["real-ip", "passes"], ["key-auth", "unknown"], ["ip-restriction", "passes"]]


def test_a_broken_object_is_named_at_the_host_and_path_that_it_wanted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    broken = ingress("broken", host="broken.example", path="/api", port="none")
    well = ingress("well", host="broken.example", path="/")
    file = tmp_path / "broken.yaml"
    file.write_text(yaml.safe_dump_all([broken, well, service()]))
    flags = ["--manifests", str(file), "--watch-without-class"]
    main(["explain", "GET", "http://broken.example/api/x", *flags])
    assert "broken.yaml:1: error: Ingress default/broken: " in capsys.readouterr().out
    for other in ("broken.example/", "other.example/api"):
        main(["explain", "GET", other, *flags])
        assert "error: " not in capsys.readouterr().out


def test_a_route_that_is_not_served_is_named_first(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    odd = ingress("odd", host="a.example", path="/", annotations={"headgate.dev/unheard": "of"})
    broken = route(rule("r", "/api*", hosts=["a.example"], match_methods=["FETCH"]))
    file = tmp_path / "two.yaml"
    file.write_text(yaml.safe_dump_all([odd, broken, service()]))
    main(["explain", "GET", "a.example/api/x", "--manifests", str(file), "--watch-without-class"])
    told = [line.split(": ", 1)[1] for line in capsys.readouterr().out.splitlines() if line.startswith(str(tmp_path))]
    assert told[0].startswith("error: ApisixRoute default/route: its route a.example/api* is not served: spec.http[0].")
    assert told[-1].startswith("warning: Ingress default/odd: spec.rules[0].http.paths[0].backend")


def test_the_nearest_host_is_named_for_one_that_is_not_there(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "GET", "http://dmeo.localhost/", "--manifests", QUICKSTART]) == 1
    assert "; nearest: demo.localhost" in capsys.readouterr().out


def test_swapped_arguments_are_one_line_with_the_right_order(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "http://demo.localhost/red", "GET"]) == 2
    assert capsys.readouterr().err == (
        "headgate: the method goes before the URL: headgate explain GET http://demo.localhost/red\n"
    )
