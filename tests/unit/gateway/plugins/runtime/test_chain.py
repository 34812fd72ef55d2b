import asyncio
import logging

import pytest

from headgate.gateway.plugins.interface import BodyFilter, Plugin, PluginConfig, PluginServices, Request, Response
from headgate.gateway.plugins.interface.errors import PluginFailed
from headgate.gateway.plugins.runtime.chain import PluginChain
from unit.gateway.plugins.running import answered, asked, request


class Noting(Plugin[PluginConfig]):
    name = "noting"

    def __init__(self, label: str, seen: list[str]) -> None:
        super().__init__(PluginConfig(), PluginServices())
        self.label = label
        self.seen = seen

    def on_request(self, request: Request):
        self.seen.append(f"{self.label} request")

    def on_response(self, request: Request, response: Response):
        self.seen.append(f"{self.label} response")

    def body_filter(self, request: Request, response: Response):
        return Around(self.label.encode())

    def on_finish(self, request: Request, status: int, seconds: float) -> None:
        self.seen.append(f"{self.label} finish {status}")


class Around(BodyFilter):
    def __init__(self, label: bytes) -> None:
        self.label = label

    def feed(self, data: bytes) -> bytes:
        return b"<" + self.label + data

    def finish(self) -> bytes:
        return self.label + b">"


class Broken(Plugin[PluginConfig]):
    name = "broken"

    def __init__(self, where: str) -> None:
        super().__init__(PluginConfig(), PluginServices())
        self.where = where

    def on_request(self, request: Request):
        self.fail("request")

    def on_response(self, request: Request, response: Response):
        self.fail("response")

    def body_filter(self, request: Request, response: Response):
        self.fail("filter")
        return BrokenFilter() if self.where == "feed" else None

    def on_finish(self, request: Request, status: int, seconds: float) -> None:
        self.fail("finish")

    def fail(self, where: str) -> None:
        if self.where == where:
            raise RuntimeError(where)


class BrokenFilter(BodyFilter):
    def feed(self, data: bytes) -> bytes:
        raise RuntimeError("in the body")


class Waiting(Plugin[PluginConfig]):
    name = "waiting"

    def __init__(self, answer: Response | None = None, error: Exception | None = None) -> None:
        super().__init__(PluginConfig(), PluginServices())
        self.answer = answer
        self.error = error

    async def on_request(self, request: Request) -> Response | None:
        await asyncio.sleep(0)
        if self.error is not None:
            raise self.error
        return self.answer

    async def on_response(self, request: Request, response: Response) -> None:
        await asyncio.sleep(0)
        response.headers.set("X-Waited", "yes")


def chained(*parts) -> PluginChain:
    return PluginChain(parts, PluginServices())


async def test_requests_go_inwards_and_answers_outwards() -> None:
    seen: list[str] = []
    plugins = chained((1, Noting("low", seen)), (9, Noting("high", seen)))
    asking = request()
    assert plugins.on_request(asking) is None
    answer = await answered(plugins, asking, Response(200), b"body")
    plugins.on_finish(asking, 200, 0.1)
    assert seen[:4] == ["high request", "low request", "low response", "high response"]
    assert seen[4:] == ["low finish 200", "high finish 200"]
    assert answer.body == b"<high<lowbody<highlow>high>"


async def test_equal_orders_keep_the_sequence_of_the_route() -> None:
    seen: list[str] = []
    chained((0, Noting("first", seen)), (0, Noting("second", seen))).on_request(request())
    assert seen == ["first request", "second request"]


async def test_answer_of_a_plugin_ends_the_request_hooks() -> None:
    seen: list[str] = []
    plugins = chained((2, Waiting(Response(418))), (1, Noting("inner", seen)))
    response = await asked(plugins, request())
    assert response is not None
    assert response.status == 418
    assert seen == []


async def test_plugins_after_one_that_waits_still_run() -> None:
    seen: list[str] = []
    plugins = chained((3, Noting("a", seen)), (2, Waiting()), (1, Noting("b", seen)))
    asking = request()
    assert await asked(plugins, asking) is None
    response = await answered(plugins, asking, Response(200))
    assert seen == ["a request", "b request", "b response", "a response"]
    assert response.headers.get("X-Waited") == "yes"


async def test_chain_without_waiting_plugins_makes_no_coroutine() -> None:
    plugins = chained((1, Noting("a", [])))
    assert plugins.on_request(request()) is None
    assert plugins.on_response(request(), Response(200)) is None


@pytest.mark.parametrize("plugin", [Broken("request"), Waiting(error=RuntimeError("later"))])
async def test_request_hook_that_raises_is_a_500_with_its_name(plugin, caplog) -> None:
    response = await asked(chained((1, plugin)), request())
    assert response is not None
    assert response.status == 500
    assert response.reason == f"plugin {plugin.name} failed"
    assert plugin.name in caplog.text


@pytest.mark.parametrize("where", ["response", "filter"])
async def test_response_hook_that_raises_makes_the_answer_a_500(where) -> None:
    response = await answered(chained((1, Broken(where))), request(), Response(200), b"body")
    assert response.status == 500
    assert response.reason == "plugin broken failed"


async def test_filter_that_raises_cuts_a_streaming_answer_off() -> None:
    with pytest.raises(PluginFailed, match="broken"):
        await answered(chained((1, Broken("feed"))), request(), Response(200), b"body")


async def test_filter_that_raises_on_a_whole_answer_makes_it_a_500() -> None:
    response = await answered(chained((1, Broken("feed"))), request(), Response(200, body=b"whole"))
    assert response.status == 500


async def test_finish_hook_that_raises_spoils_nothing_for_others() -> None:
    seen: list[str] = []
    chained((1, Broken("finish")), (2, Noting("other", seen))).on_finish(request(), 499, 0.1)
    assert seen == ["other finish 499"]


async def test_traceback_is_logged_once(caplog) -> None:
    plugins = chained((1, Broken("request")))
    with caplog.at_level(logging.ERROR):
        plugins.on_request(request())
        plugins.on_request(request())
    assert [bool(record.exc_info) for record in caplog.records] == [True, False]


@pytest.mark.parametrize("path", ["/a b", "/a\r\nX: y", "a", "/#", "/ü"])
async def test_path_that_cannot_be_sent_never_is(path) -> None:
    class Spoiling(Noting):
        def on_request(self, request: Request):
            request.path = path

    response = await asked(chained((1, Spoiling("s", []))), request())
    assert response is not None
    assert response.status == 500


async def test_answer_that_opens_a_tunnel_stays() -> None:
    response = Response(101, body=None, from_upstream=True)
    assert chained((1, Noting("n", []))).on_response(request(), response) is None
    assert (response.status, response.body) == (101, None)


async def test_status_that_is_none_becomes_500() -> None:
    class Spoiling(Noting):
        def on_response(self, request: Request, response: Response):
            response.status = 99

    response = await answered(chained((1, Spoiling("s", []))), request(), Response(200))
    assert response.status == 500


@pytest.mark.parametrize(("method", "status"), [("HEAD", 200), ("GET", 304), ("GET", 204)])
async def test_answers_without_a_body_get_no_filter(method, status) -> None:
    plugins = chained((1, Noting("a", [])))
    asking = request(method=method)
    assert plugins.response_filter(asking, Response(status, body=None)) is None


async def test_body_that_was_read_is_filtered_at_once() -> None:
    class Changing(Noting):
        def request_body_filter(self, request: Request):
            return Around(b"!")

    plugins = chained((1, Changing("c", [])))
    asking = request(method="POST", content_length=4, body=b"body")
    assert plugins.request_filter(asking) is None
    assert asking.body == b"<!body!>"
    assert asking.content_length == 8
    assert asking.is_body_replaced


async def test_body_that_is_too_long_to_read_is_a_413() -> None:
    class Reading(Waiting):
        async def on_request(self, request: Request) -> Response | None:
            await request.read_body(10)
            return None

    response = await asked(chained((1, Reading())), request(method="POST", content_length=11))
    assert response is not None
    assert response.status == 413
