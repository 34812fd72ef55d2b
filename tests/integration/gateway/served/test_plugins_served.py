"""Every family of built-in plugins once, from the table's entry to the wire."""

import asyncio
import base64
import gzip
import hashlib
import json

import aiohttp
import pytest

from fakes.gateway.proxied import OK, Conversation, answering
from fakes.gateway.served import HOST, Got, asking, at, named, origins, ports, read_answer, sealed, served, site, to
from fakes.peers.grpc_service import grpc_server
from fakes.waiting import until
from headgate.common.table import PluginUse

TEXT = b"all work and no play " * 200

STREAMED = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%b\r\n0\r\n\r\n" % (
    len(TEXT),
    TEXT,
)


async def test_headers_are_rewritten_both_ways_and_ours_replaced_not_repeated() -> None:
    rewrite = {"headers": {"set": {"X-Forwarded-Proto": "https", "X-Real-IP": "9.9.9.9", "X-Request-ID": "mine"}}}
    answer = {"headers": {"set": {"X-Frame-Options": "DENY"}, "remove": ["X-Powered-By"]}}
    plugins = [("proxy-rewrite", rewrite), ("response-rewrite", answer)]
    raw = b"HTTP/1.1 200 OK\r\nX-Powered-By: PHP\r\nContent-Length: 2\r\n\r\nok"
    async with origins(answering(raw)) as (origin,), served(site(to("up", plugins=plugins)), at(origin.port)) as proxy:
        got = await proxy.get()
        assert (got["x-frame-options"], got["x-powered-by"], got.body) == ("DENY", "", b"ok")
        head = origin.heads[0]
        for line in (b"X-Forwarded-Proto: https", b"X-Real-IP: 9.9.9.9", b"X-Request-ID: mine"):
            name = line.partition(b":")[0].lower()
            assert head.lower().count(b"\r\n" + name + b":") == 1
            assert b"\r\n" + line + b"\r\n" in head


async def test_route_of_plugins_alone_redirects() -> None:
    plugins = [("redirect", {"uri": "https://$host/new$uri", "ret_code": 308})]
    async with served(site(to(plugins=plugins))) as proxy:
        got = await proxy.post(b"body", "/x?y=1")
        assert (got.status, got["location"]) == (308, "https://a.example/new/x")
        client = await proxy.connect()
        for _ in range(2):
            await client.send(asking("/again"))
            assert (await read_answer(client)).status == 308


async def test_route_of_plugins_that_answer_nothing_is_a_503() -> None:
    async with served(site(to(plugins=[("cors", {})]))) as proxy:
        assert (await proxy.get()).status == 503


async def test_preflight_is_answered_here_and_the_request_that_follows_there() -> None:
    plugins = [("cors", {"allow_origins": "https://b.example", "allow_methods": "PUT"})]
    async with origins(answering(OK)) as (origin,), served(site(to("up", plugins=plugins)), at(origin.port)) as proxy:
        asked = {"Origin": "https://b.example", "Access_Control_Request_Method": "PUT"}
        preflight = await proxy.get(method="OPTIONS", **asked)
        assert (preflight.status, preflight["access-control-allow-methods"]) == (200, "PUT")
        assert origin.heads == []
        got = await proxy.get(Origin="https://b.example")
        assert (got.body, got["access-control-allow-origin"]) == (b"ok", "https://b.example")


async def streaming(conversation: Conversation) -> None:
    """Answers in two pieces."""
    while True:
        await conversation.request()
        await conversation.send(STREAMED[:1000])
        await asyncio.sleep(0.02)
        await conversation.send(STREAMED[1000:])


async def test_streamed_answer_is_compressed_for_chunks_and_for_http_1_0() -> None:
    plugins = [("gzip", {"http_version": "1.0"})]
    async with (
        origins(streaming) as (origin,),
        served(site(to("up", plugins=plugins)), at(origin.port)) as proxy,
    ):
        got = await proxy.get(Accept_Encoding="gzip")
        assert (got["content-encoding"], got["transfer-encoding"]) == ("gzip", "chunked")
        assert gzip.decompress(got.body) == TEXT
        old = await proxy.connect()
        await old.send(b"GET / HTTP/1.0\r\nHost: a.example\r\nAccept-Encoding: gzip\r\n\r\n")
        got = await read_answer(old)
        assert (got["content-encoding"], got["content-length"]) == ("gzip", "")
        assert gzip.decompress(got.body) == TEXT


async def test_name_and_password_are_asked_for_and_checked() -> None:
    users = {"users": [{"username": "jo", "password": ""}], "user_header": "X-User"}
    use = PluginUse(name="basic-auth", config=users, secrets={"users.0.password": sealed(b"s3cret")})
    async with origins(answering(OK)) as (origin,):
        route = to("up").model_copy(update={"plugins": (use,)})
        async with served(site(route), at(origin.port)) as proxy:
            refused = await proxy.get()
            assert (refused.status, refused["www-authenticate"]) == (401, 'Basic realm="basic"')
            assert origin.heads == []
            token = base64.b64encode(b"jo:s3cret").decode()
            assert (await proxy.get(Authorization=f"Basic {token}")).body == b"ok"
            assert b"\r\nX-User: jo\r\n" in origin.heads[0]


async def test_client_comes_in_by_a_digest_and_only_with_the_right_password() -> None:
    digest = hashlib.md5(b"jo:shop:s3cret").hexdigest().encode()
    use = PluginUse(name="digest-auth", config={"realm": "shop"}, secrets={"htdigest": sealed(b"jo:shop:" + digest)})
    async with origins(answering(OK)) as (origin,):
        route = to("up").model_copy(update={"plugins": (use,)})
        async with served(site(route), at(origin.port)) as proxy:
            url = f"http://127.0.0.1:{proxy.port}/p?q=1"
            for password, statuses in (("wrong", [401, 401]), ("s3cret", [200, 200])):
                middleware = aiohttp.DigestAuthMiddleware("jo", password)
                async with aiohttp.ClientSession(middlewares=(middleware,), headers={"Host": HOST}) as client:
                    assert [(await client.get(url)).status for _ in range(2)] == statuses
            assert len(origin.heads) == 2


@pytest.mark.parametrize(
    ("plugin", "config", "status"),
    [
        ("limit-count", {"count": 2, "time_window": 60, "rejected_code": 429}, 429),
        ("limit-req", {"rate": 0.01, "burst": 1, "nodelay": True}, 503),
    ],
)
async def test_requests_beyond_the_limit_are_refused_and_a_new_table_forgets_nothing(
    plugin: str, config: dict[str, object], status: int
) -> None:
    async with origins(answering(OK)) as (origin,):
        route = to("up", plugins=[(plugin, config)])
        async with served(site(route), at(origin.port)) as proxy:
            assert [(await proxy.get()).status for _ in range(3)] == [200, 200, status]
            proxy.put(site(route, to("up", path="/other")))
            assert (await proxy.get()).status == status
            assert (await proxy.get("/other")).status == 200


async def test_service_decides_who_may_pass_and_tells_the_upstream_who_it_is() -> None:
    async def authorize(conversation: Conversation) -> None:
        while True:
            head, _ = await conversation.request()
            if b"X-Token: good" in head or b"x-token: good" in head.lower():
                await conversation.send(b"HTTP/1.1 200 OK\r\nX-User: jo\r\nContent-Length: 0\r\n\r\n")
            else:
                await conversation.send(b"HTTP/1.1 401 Unauthorized\r\nContent-Length: 4\r\n\r\nno!\n")

    async with origins(authorize, answering(OK)) as (service, origin):
        asked = {"path": "/check", "request_headers": ["X-Token"], "upstream_headers": ["X-User"]}
        for where in ({"upstream": "auth"}, {"uri": f"http://127.0.0.1:{service.port}/check"}):
            route = to("up", plugins=[("forward-auth", {**asked, **where})])
            async with served(site(route), at(origin.port), at(service.port, key="auth")) as proxy:
                refused = await proxy.get(X_User="root")
                assert (refused.status, refused.body) == (401, b"no!\n")
                before = len(origin.heads)
                assert (await proxy.get("/x", X_Token="good", X_User="root")).body == b"ok"
                assert b"\r\nX-User: jo\r\n" in origin.heads[before]
                assert b"root" not in origin.heads[before]
        told = service.heads[-1]
        assert told.startswith(b"GET /check HTTP/1.1\r\n")
        assert b"\r\nX-Forwarded-Uri: /x\r\n" in told
        assert b"aiohttp" not in told


async def test_copy_arrives_at_its_upstream_with_the_body() -> None:
    copies: list[bytes] = []

    async def shadow(conversation: Conversation) -> None:
        head, body = await conversation.request()
        copies.append(head + body)

    async with origins(answering(OK), shadow) as (origin, mirror):
        route = to("up", plugins=[("proxy-mirror", {"upstream": "shadow"})])
        async with served(site(route), at(origin.port), at(mirror.port, key="shadow")) as proxy:
            assert (await proxy.post(b"hello", "/x")).body == b"ok"
            await until(lambda: bool(copies))
            assert copies[0].startswith(b"POST /x HTTP/1.1\r\nHost: a.example\r\n")
            assert copies[0].endswith(b"\r\n\r\nhello")


async def test_errors_are_replaced_by_a_page_of_an_upstream_ours_too() -> None:
    page = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 5\r\n\r\nsorry"
    error = b"HTTP/1.1 500 Internal Server Error\r\nContent-Length: 5\r\n\r\ntrace"
    async with origins(answering(error), answering(page)) as (origin, pages):
        errors = [("error-page", {"upstream": "pages", "statuses": ["500-599"], "keep_status": True})]
        routes = to("up", plugins=errors), to("gone", path="/gone", plugins=errors)
        async with served(site(*routes), at(origin.port), at(pages.port, key="pages")) as proxy:
            for path, status in (("/", 500), ("/gone", 503)):
                got = await proxy.get(path)
                assert (got.status, got.body, got["content-type"]) == (status, b"sorry", "text/html")
            assert [
                b"\r\nX-Code: %d\r\n" % status in head for status, head in zip((500, 503), pages.heads, strict=True)
            ] == [True] * 2


async def test_answer_goes_out_at_its_pace() -> None:
    plugins = [("bandwidth", {"rate": 2000})]
    async with (
        origins(answering(named(b"x" * 3000))) as (origin,),
        served(site(to("up", plugins=plugins)), at(origin.port)) as proxy,
    ):
        client = await proxy.connect()
        for _ in range(2):
            began = asyncio.get_running_loop().time()
            await client.send(asking())
            assert (await read_answer(client)).body == b"x" * 3000
            # The first second's share goes at once, the rest in pieces.
            assert asyncio.get_running_loop().time() - began > 0.3


async def test_unknown_plugin_and_bad_field_cost_their_route_alone() -> None:
    async with origins(answering(OK)) as (origin,):
        unknown = to("up", path="/a", plugins=[("corse", {})])
        bad = to("up", path="/b", plugins=[("cors", {"max_agee": 1})])
        async with served(site(unknown, bad, to("up")), at(origin.port)) as proxy:
            got = await proxy.get("/a")
            assert got.status == 500
            assert "the nearest is cors" in got["x-headgate-reason"]
            assert "max_agee" in (await proxy.get("/b"))["x-headgate-reason"]
            assert (await proxy.get()).status == 200


async def test_mirror_and_errors_go_by_the_bounds_of_their_upstreams() -> None:
    async with origins(answering(OK)) as (origin,):
        route = to("up", plugins=[("forward-auth", {"upstream": "auth"})])
        bounded = at(1, key="auth", circuit_breaker={"max_requests": 1}, ejection={"consecutive_errors": 1})
        async with served(site(route), at(origin.port), bounded) as proxy:
            got: Got = await proxy.get()
            assert got.status == 403
            circuit = proxy.health.state("auth").circuit
            assert circuit is not None
            assert (circuit.requests, ports([origin])) == (0, [origin.port])


@pytest.mark.parametrize(("asked", "sent"), [("HEAD", "GET"), ("GET", "HEAD")])
async def test_method_that_a_plugin_changes_frames_each_side_by_its_own(asked: str, sent: str) -> None:
    async def by_method(conversation: Conversation) -> None:
        while True:
            head, _ = await conversation.request()
            whole = named(b"x" * 100_000)
            await conversation.send(whole if head.startswith(b"GET") else whole[: whole.index(b"\r\n\r\n") + 4])

    plugins = [("proxy-rewrite", {"method": sent})]
    async with origins(by_method) as (origin,), served(site(to("up", plugins=plugins)), at(origin.port)) as proxy:
        client = await proxy.connect()
        for _ in range(3):
            await client.send(asking(method=asked))
            got = await read_answer(client, has_body=asked != "HEAD")
            assert (got.status, got.body) == (200, b"")
        assert all(head.startswith(sent.encode()) for head in origin.heads)


async def test_upstreams_are_chosen_by_rules_and_come_and_go_with_the_table() -> None:
    rule = {"match": [{"vars": [["arg_to", "==", "new"]]}], "weighted_upstreams": [{"upstream_id": "new"}]}
    plugins = [("traffic-split", {"rules": [rule]})]
    async with (
        origins(answering(OK), answering(named(b"new"))) as (old, new),
        served(site(to("up", plugins=plugins)), at(old.port)) as proxy,
    ):
        assert (await proxy.get("/?to=new")).status == 503
        proxy.put(at(new.port, key="new"))
        assert [(await proxy.get(path)).body for path in ("/?to=new", "/")] == [b"new", b"ok"]
        proxy.remove("upstreams", "new")
        missing = await proxy.get("/?to=new")
        assert (missing.status, missing["x-headgate-reason"]) == (503, "new is not in the table")


async def test_answers_are_kept_over_revisions_of_the_table() -> None:
    plugins = [("proxy-cache", {})]
    async with origins(answering(OK)) as (origin,), served(site(to("up", plugins=plugins)), at(origin.port)) as proxy:
        assert (await proxy.get())["apisix-cache-status"] == "MISS"
        proxy.put(site(to("up", plugins=[*plugins, ("echo", {"after_body": "!"})])))
        kept = await proxy.get()
        assert (kept["apisix-cache-status"], kept.body) == ("HIT", b"ok!")
    assert len(origin.heads) == 1


async def test_what_was_logged_is_sent_before_the_gateway_ends() -> None:
    got: list[bytes] = []

    async def take(conversation: Conversation) -> None:
        got.append(await conversation.reader.read())

    async with origins(answering(OK), take) as (origin, logs):
        logger = {"host": "127.0.0.1", "port": logs.port, "timeout": 5000, "log_format": {"asked": "$request_uri"}}
        async with served(site(to("up", plugins=[("tcp-logger", logger)])), at(origin.port)) as proxy:
            await proxy.get("/?one")
            await proxy.get("/?two")
        await until(lambda: bool(got))
    entries = json.loads(got[0])
    assert [entry["asked"] for entry in entries] == ["/?one", "/?two"]


async def test_a_browsers_call_reaches_a_grpc_service_below_the_path_of_its_route() -> None:
    message = b"\0\0\0\0\3abc"
    route = to("up", path="/grpc/web", plugins=[("grpc-web", {})])
    async with grpc_server() as (_, port), served(site(route), at(port, protocol="h2c")) as proxy:
        kind = "application/grpc-web+proto"
        got = await proxy.post(message, "/grpc/web/test.Echo/Unary", Content_Type=kind)
    assert (got.status, got["content-type"]) == (200, kind)
    assert got.body.startswith(b"\0\0\0\0\3cba\x80")
    assert b"grpc-status:0\r\n" in got.body


async def test_a_form_becomes_json_for_the_upstream_and_its_xml_becomes_json_for_the_client() -> None:
    answer = b"<answer><name>Madrid</name></answer>"
    raw = b"HTTP/1.1 200 OK\r\nContent-Type: text/xml\r\nContent-Length: %d\r\n\r\n%b" % (len(answer), answer)
    asked: list[bytes] = []

    async def capital(conversation: Conversation) -> None:
        asked.append((await conversation.request())[1])
        await conversation.send(raw)

    templates = {
        "request": {"template": "{*_escape_json(context)*}"},
        "response": {"template": '{"capital": {*_escape_json(answer.name)*}}'},
    }
    route = to("up", plugins=[("body-transformer", templates)])
    async with origins(capital) as (origin,), served(site(route), at(origin.port)) as proxy:
        got = await proxy.post(b"country=Spain&country=%22", Content_Type="application/x-www-form-urlencoded")
    assert asked == [b'{"country":["Spain","\\""]}']
    assert json.loads(got.body) == {"capital": "Madrid"}


async def test_program_of_nginx_answers_closes_or_sends_elsewhere() -> None:
    steps = [
        {"do": "rewrite", "pattern": "^/old/(?!x)(.*)$", "replacement": "/new/$1"},
        {"do": "if", "test": {"variable": "arg_close"}, "steps": [{"do": "return", "status": 444}]},
        {"do": "if", "test": {"variable": "arg_say"}, "steps": [{"do": "return", "status": 200, "text": "$arg_say"}]},
    ]
    plugins = [("nginx-rewrite", {"steps": steps})]
    async with origins(answering(OK)) as (origin,), served(site(to("up", plugins=plugins)), at(origin.port)) as proxy:
        assert (await proxy.get("/old/a%20b?q=1")).body == b"ok"
        assert origin.heads[0].startswith(b"GET /new/a%20b?q=1 ")
        assert (await proxy.get("/?say=hello")).body == b"hello"
        client = await proxy.connect()
        await client.send(asking("/?close=1"))
        assert await client.rest() == b""
        assert proxy.log.records[-1][5] == 444
