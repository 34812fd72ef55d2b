"""Asking by Envoy's gRPC protocol, without a wire: what is told of a request, and which answers count."""

from typing import Any

import pytest

from fakes.peers.ext_authz import allowed, denied, header
from headgate.gateway.plugins.built_in.authentication.ext_authz.messages import METHOD, messages
from headgate.gateway.plugins.interface import Headers, PluginServices, Request, Response
from unit.gateway.plugins.running import answered, asked, chain, request
from unit.gateway.plugins.service import sending

OK = {"grpc-status": "0"}


def framed(message: bytes) -> bytes:
    return b"\0" + len(message).to_bytes(4, "big") + message


def answering(
    body: bytes, headers: dict[str, str] | None = None, status: int = 200, seen: list[Request] | None = None
) -> PluginServices:
    def answer(upstream: str, question: Request) -> Response:
        if seen is not None:
            seen.append(question)
        return Response(status, Headers((OK if headers is None else headers).items()), body)

    return PluginServices(send_to=sending(answer))


async def told(given: Request, **config: Any) -> Any:
    seen: list[Request] = []
    plugins = chain(("ext-authz", {"upstream": "u", **config}), services=answering(framed(allowed()), seen=seen))
    assert await asked(plugins, given) is None
    (question,) = seen
    assert (question.method, question.path, question.headers.get("grpc-timeout")) == ("POST", METHOD, "3000m")
    assert question.body is not None
    return messages().request.FromString(question.body[5:]).attributes


async def test_headers_of_one_name_are_joined_and_names_are_in_lower_case() -> None:
    given = request("/p", [("X-A", "1"), ("x-a", "2"), ("Cookie", "a=1"), ("Cookie", "b=2")], http_version="2.0")
    http = (await told(given)).request.http
    headers = {each.key: each.value for each in http.headers}
    assert (headers["x-a"], headers["cookie"], http.protocol) == ("1,2", "a=1; b=2", "HTTP/2")


async def test_text_beyond_ascii_is_told_as_utf8() -> None:
    given = request("/p", [("X-Name", "é".encode().decode("latin-1")), ("X-Raw", "\xff")])
    headers = {each.key: each.value for each in (await told(given)).request.http.headers}
    assert (headers["x-name"], headers["x-raw"]) == ("é", "\N{REPLACEMENT CHARACTER}")


async def test_a_body_of_unknown_length_has_no_size() -> None:
    http = (await told(request("/p", method="POST", content_length=None, body=b"abc"))).request.http
    assert (http.size, http.body) == (-1, "")


@pytest.mark.parametrize(
    ("body", "headers", "status"),
    [
        (framed(allowed()), {}, 200),
        (framed(allowed()), {"grpc-status": "14"}, 200),
        (framed(allowed()), None, 503),
        (b"\1" + framed(allowed())[1:], None, 200),
        (framed(allowed()) * 2, None, 200),
        (framed(allowed())[:-1], None, 200),
        (b"", None, 200),
        (framed(denied()), None, 200),
    ],
)
async def test_only_one_whole_message_of_a_call_that_went_well_lets_in(
    body: bytes, headers: dict[str, str] | None, status: int
) -> None:
    config = {"upstream": "u", "status_on_error": 503}
    refusal = await asked(chain(("ext-authz", config), services=answering(body, headers, status)), request())
    assert refusal is not None
    assert refusal.status == (403 if body == framed(denied()) else 503)


async def test_an_empty_answer_lets_in_as_its_status_is_ok() -> None:
    assert await asked(chain(("ext-authz", {"upstream": "u"}), services=answering(framed(b""))), request()) is None


@pytest.mark.parametrize(
    ("fields", "given"),
    [
        ({}, [("X-Own", "web"), ("x-own", "auth")]),
        ({"append": {"value": True}}, [("X-Own", "web"), ("x-own", "auth")]),
        ({"append": {"value": False}}, [("x-own", "auth")]),
        ({"append_action": 1}, [("X-Own", "web")]),
        ({"append_action": 2}, [("x-own", "auth")]),
        ({"append_action": 3}, [("x-own", "auth")]),
    ],
)
async def test_headers_for_the_client_go_by_their_action(fields: Any, given: list[tuple[str, str]]) -> None:
    """As of copyOkResponseMutations in Envoy's `ext_authz_grpc_impl.cc`."""
    said = allowed(response_headers_to_add=[header("x-own", "auth", **fields)])
    plugins = chain(("ext-authz", {"upstream": "u"}), services=answering(framed(said)))
    asking = request()
    assert await asked(plugins, asking) is None
    response = await answered(plugins, asking, Response(200, Headers([("X-Own", "web")])))
    assert sorted(response.headers) == given


@pytest.mark.parametrize("fields", [{}, {"append": {"value": True}}])
async def test_the_client_gets_all_cookies_of_the_service(fields: Any) -> None:
    cookies = [header("set-cookie", text, **fields) for text in ("a=1", "b=2")]
    services = answering(framed(allowed(response_headers_to_add=cookies)))
    asking, plugins = request(), chain(("ext-authz", {"upstream": "u"}), services=services)
    assert await asked(plugins, asking) is None
    response = await answered(plugins, asking, Response(200, Headers()))
    services = answering(framed(denied(headers=cookies)))
    refusal = await asked(chain(("ext-authz", {"upstream": "u"}), services=services), request())
    assert refusal is not None
    assert [each.headers.get_all("Set-Cookie") for each in (response, refusal)] == [["a=1", "b=2"]] * 2


async def test_a_header_for_the_upstream_stands_in_the_place_of_the_clients() -> None:
    services = answering(framed(allowed(headers=[header("x-role", "user")])))
    asking = request("/p", [("X-Role", "admin")])
    assert await asked(chain(("ext-authz", {"upstream": "u"}), services=services), asking) is None
    assert asking.headers.get_all("X-Role") == ["user"]


@pytest.mark.parametrize("given", ["role=admin", "%72ole=admin", "rol%65=admin&role=x", "role"])
async def test_a_parameter_of_the_service_stands_in_the_place_of_the_clients(given: str) -> None:
    """However its name is written: upstreams decode it, and most take the first one."""
    said = allowed(query_parameters_to_set=[{"key": "role", "value": "a user"}], query_parameters_to_remove=["a debug"])
    asking = request(f"/p?{given}&a=1&a+debug=1&a%20debug=2")
    assert await asked(chain(("ext-authz", {"upstream": "u"}), services=answering(framed(said))), asking) is None
    assert asking.query == "a=1&role=a%20user"
