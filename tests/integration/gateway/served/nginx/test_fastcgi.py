"""Applications behind FastCGI (`test/e2e/annotations/fastcgi.go`), and variations."""

import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from fakes.gateway.served import HOST
from fakes.peers.fastcgi import FcgiRequest, application, needs_php, output, php, php_script
from fakes.translator.applied import World, world
from fakes.translator.deltas import endpoint_slice, service
from fakes.translator.nginx import ADOPTED, NGINX_CLASS, classed, options

HELLO = output(b"Content-Type: text/plain\r\nContent-Length: 12\r\n\r\nHello world!")
OTHER = output(b"Content-Length: 5\r\n\r\nother")


class Applications(NamedTuple):
    """A proxy before Services, and what `hello` and `other` were asked by FastCGI; `plain` and `web` speak HTTP."""

    made: World
    asked: list[FcgiRequest]

    async def ask(self, path: str = "/hello", **headers: str) -> FcgiRequest:
        """Send a request that has to be answered with 200; return what came of it."""
        got = await self.made.proxy.get(path, **headers)
        assert got.status == 200, got.body
        return self.asked[-1]


@contextlib.asynccontextmanager
async def applications() -> AsyncIterator[Applications]:
    asked: list[FcgiRequest] = []
    scripts = {
        "hello": application(HELLO, asked),
        "other": application(OTHER, asked),
        "web": application(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n"),
    }
    async with world("plain", settings=ADOPTED, **scripts) as made:
        made.proxy.apply(NGINX_CLASS)
        yield Applications(made, asked)


@pytest.fixture
async def fcgi() -> AsyncIterator[Applications]:
    async with applications() as made:
        yield made


def spoken(**more: Any) -> Any:
    """An Ingress before `hello`."""
    return classed(**{"to": "hello", "backend_protocol": "FCGI", **more})


def params(namespace: str = "default", **data: str) -> Any:
    metadata = {"name": "params", "namespace": namespace}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


@pytest.mark.parametrize("protocol", ["FCGI", "fcgi", "Fcgi"])
async def test_applications_are_spoken_to_by_fastcgi(fcgi: Applications, protocol: str) -> None:
    fcgi.made.proxy.apply(spoken(backend_protocol=protocol, path="/hello"))
    got = await fcgi.made.proxy.get("/hello")
    assert (got.status, got.body) == (200, b"Hello world!")
    assert fcgi.made.proxy.problems(spoken()) == []


async def test_an_endpoint_that_speaks_http_is_a_502(fcgi: Applications) -> None:
    fcgi.made.proxy.apply(spoken(to="web"))
    assert await fcgi.made.proxy.status() == 502


async def test_usual_parameters_are_those_of_nginx(fcgi: Applications) -> None:
    fcgi.made.proxy.apply(spoken())
    request = await fcgi.ask("/hello/a?b=c")
    assert request["SCRIPT_NAME"] == request["DOCUMENT_URI"] == "/hello/a"
    assert (request["QUERY_STRING"], request["REQUEST_URI"]) == ("b=c", "/hello/a?b=c")
    assert (request["SERVER_NAME"], request["HTTP_HOST"]) == (HOST, HOST)
    assert request["REDIRECT_STATUS"] == "200"
    assert "SCRIPT_FILENAME" not in request.names()


async def test_the_index_is_the_script_of_paths_that_end_with_a_slash(fcgi: Applications) -> None:
    fcgi.made.proxy.apply(spoken(fastcgi_index="index.php"))
    assert (await fcgi.ask("/hello/"))["SCRIPT_NAME"] == "/hello/index.php"
    assert (await fcgi.ask("/hello"))["SCRIPT_NAME"] == "/hello"


@pytest.mark.parametrize("named", ["params", "default/params"])
async def test_parameters_of_a_config_map_are_sent_too(fcgi: Applications, named: str) -> None:
    data = {"SCRIPT_FILENAME": "$fastcgi_script_name", "REDIRECT_STATUS": "201", "X-Y_1.a": "a${uri}/$http_x_one"}
    fcgi.made.proxy.apply(params(**data), spoken(fastcgi_params_configmap=named, fastcgi_index="index.php"))
    request = await fcgi.ask("/hello/", X_One="1")
    assert request["SCRIPT_FILENAME"] == "/hello/index.php"
    assert (request["REDIRECT_STATUS"], request["X-Y_1.a"]) == ("201", "a/hello//1")
    fcgi.made.proxy.apply(params(SCRIPT_FILENAME="/other.php"))
    assert (await fcgi.ask())["SCRIPT_FILENAME"] == "/other.php"


async def test_paths_are_closed_without_the_config_map(fcgi: Applications) -> None:
    made = spoken(fastcgi_params_configmap="params")
    fcgi.made.proxy.apply(made)
    assert await fcgi.made.proxy.status() == 503
    assert "ConfigMap default/params not found" in fcgi.made.proxy.messages(made)
    fcgi.made.proxy.apply(params(A="b"))
    assert (await fcgi.ask())["A"] == "b"


async def test_a_config_map_of_another_namespace_is_left_out(fcgi: Applications) -> None:
    made = spoken(fastcgi_params_configmap="other/params")
    fcgi.made.proxy.apply(params("other", A="b"), made)
    assert "A" not in (await fcgi.ask()).names()
    assert "must be a ConfigMap of namespace default" in fcgi.made.proxy.messages(made)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("A", "b;c"),
        ("A", 'b"c'),
        ("A", "b c"),
        ("A b", "c"),
        ("A;", "b"),
        ("A", "$nothing_known"),
        ("A", "a$"),
        ("A", "${}"),
    ],
)
async def test_nothing_is_served_with_a_parameter_that_nginx_would_not_take(
    fcgi: Applications, name: str, value: str
) -> None:
    made = spoken(fastcgi_params_configmap="params")
    fcgi.made.proxy.apply(params(**{name: value}), made)
    assert await fcgi.made.proxy.status() == 404
    assert "InvalidAnnotation" in fcgi.made.proxy.errors(made)


@pytest.mark.parametrize("index", ["a/b.php", "index.php;", "$uri", "a b"])
async def test_nothing_is_served_with_an_index_that_is_no_file(fcgi: Applications, index: str) -> None:
    made = spoken(fastcgi_index=index)
    fcgi.made.proxy.apply(made)
    assert await fcgi.made.proxy.status() == 404
    assert fcgi.made.proxy.errors(made) == ["InvalidAnnotation"]


async def test_annotations_of_fastcgi_say_nothing_where_http_is_spoken(fcgi: Applications) -> None:
    fcgi.made.proxy.apply(params(A="b"))
    fcgi.made.proxy.apply(classed(to="plain", fastcgi_index="index.php", fastcgi_params_configmap="params"))
    assert await fcgi.made.proxy.bodies(1) == ["plain"]


async def test_a_rewritten_path_is_that_of_the_script(fcgi: Applications) -> None:
    fcgi.made.proxy.apply(spoken(path="/app/(.*)", rewrite_target="/$1"))
    request = await fcgi.ask("/app/x.php?q=1")
    assert (request["SCRIPT_NAME"], request["REQUEST_URI"]) == ("/x.php", "/app/x.php?q=1")


async def test_a_body_of_unknown_length_is_sent_with_its_length(fcgi: Applications) -> None:
    fcgi.made.proxy.apply(spoken())
    got = await fcgi.made.proxy.post(b"3\r\nabc\r\n0\r\n\r\n", Transfer_Encoding="chunked")
    assert got.status == 200
    assert (fcgi.asked[-1].body, fcgi.asked[-1]["CONTENT_LENGTH"]) == (b"abc", "3")


async def test_other_annotations_hold_for_fastcgi_too(fcgi: Applications) -> None:
    fcgi.made.proxy.apply(spoken(upstream_vhost="inner.example", proxy_body_size="1k", enable_cors="true"))
    assert (await fcgi.ask())["HTTP_HOST"] == "inner.example"
    assert (await fcgi.made.proxy.post(b"x" * 2000)).status == 413
    assert (await fcgi.made.proxy.get(Origin="http://a.example"))["access-control-allow-origin"] == "*"


async def test_a_canary_is_spoken_to_by_fastcgi_with_the_main_ones_parameters(fcgi: Applications) -> None:
    fcgi.made.proxy.apply(params(A="b"), spoken(fastcgi_params_configmap="params"))
    fcgi.made.proxy.apply(classed("canary", to="other", canary="true", canary_by_header="Test"))
    assert (await fcgi.made.proxy.get(Test="always")).body == b"other"
    assert fcgi.asked[-1]["A"] == "b"


async def test_what_the_options_say_of_upstreams_holds(fcgi: Applications) -> None:
    fcgi.made.proxy.apply(options(hide_headers="X-Powered-By"), spoken())
    assert (await fcgi.ask())["HTTP_X_SCHEME"] == "http"


@needs_php
async def test_php_is_served(tmp_path: Path) -> None:
    php_script(tmp_path, "index.php", "echo 'FastCGI: ', $_SERVER['REQUEST_METHOD'], ' ', $_GET['q'];")
    async with php() as port, world(settings=ADOPTED) as made:
        made.proxy.apply(NGINX_CLASS, service("php"), endpoint_slice("php", "127.0.0.1", port=port))
        made.proxy.apply(
            params(SCRIPT_FILENAME=f"{tmp_path}/index.php"), spoken(to="php", fastcgi_params_configmap="params")
        )
        got = await made.proxy.get("/?q=1")
        assert (got.status, got.body) == (200, b"FastCGI: GET 1")
