"""The demo backend: what its answers say."""

from aiohttp.test_utils import TestClient, TestServer

from headgate.cli.commands.demo_backend import build_app


async def test_it_says_what_reached_it() -> None:
    async with TestClient(TestServer(build_app("red"))) as client:
        answer = await client.post("/a/b?c=%20d", data=b"12345", headers={"Host": "demo.localhost", "X-Test": "1"})
        document = await answer.json()
    assert document["name"] == "red"
    assert document["method"] == "POST"
    assert document["path"] == "/a/b?c=%20d"
    assert document["host"] == "demo.localhost"
    assert document["headers"]["X-Test"] == "1"
    assert document["body_bytes"] == 5


async def test_the_status_can_be_chosen_and_health_is_always_good() -> None:
    async with TestClient(TestServer(build_app("broken", status=503))) as client:
        assert (await client.get("/")).status == 503
        assert (await client.get("/healthz")).status == 200


async def test_a_head_request_has_the_headers_without_the_body() -> None:
    async with TestClient(TestServer(build_app("red"))) as client:
        answer = await client.head("/")
        assert int(answer.headers["Content-Length"]) > 0
        assert await answer.read() == b""
