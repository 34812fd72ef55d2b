"""Calls of gRPC for requests of HTTP, by the cases of Apache APISIX (t/plugin/grpc-transcode*.t)."""

import asyncio
import base64
import json
from typing import Any

import aiohttp
import grpc
import pytest
from google.protobuf import descriptor_pb2

from fakes.gateway.proxied import OK, answering, proxied
from headgate.common.plugins.checking import check_use
from headgate.common.plugins.errors import PluginFault
from headgate.common.plugins.transformation.protobuf_methods import find_method, status_message
from headgate.common.table import PluginUse
from headgate.gateway.model.connection import ConnectionSpec
from headgate.gateway.plugins.interface import Headers, Request, Response
from headgate.gateway.plugins.runtime.run import RoutePlugins
from headgate.gateway.proxy.policies import RoutePolicies
from unit.gateway.plugins.running import answered, asked, chain, request

FIELD = descriptor_pb2.FieldDescriptorProto
ONE, MANY = FIELD.LABEL_OPTIONAL, FIELD.LABEL_REPEATED


def described() -> str:
    """Describe a service `helloworld.Greeter`, as protoc would."""
    file = descriptor_pb2.FileDescriptorProto(name="hello.proto", package="helloworld", syntax="proto3")
    gender = file.enum_type.add(name="Gender")
    for number, name in enumerate(("GENDER_UNKNOWN", "GENDER_MALE", "GENDER_FEMALE")):
        gender.value.add(name=name, number=number)
    message = file.message_type.add(name="Message")
    kinds = {
        "name": FIELD.TYPE_STRING,
        "a": FIELD.TYPE_INT64,
        "small": FIELD.TYPE_INT32,
        "is_on": FIELD.TYPE_BOOL,
        "share": FIELD.TYPE_DOUBLE,
        "raw": FIELD.TYPE_BYTES,
    }
    for number, (name, kind) in enumerate(kinds.items(), 1):
        message.field.add(name=name, number=number, type=kind, label=ONE)
    message.field.add(name="gender", number=7, type=FIELD.TYPE_ENUM, label=ONE, type_name=".helloworld.Gender")
    message.field.add(name="items", number=8, type=FIELD.TYPE_STRING, label=MANY)
    message.field.add(name="inner", number=9, type=FIELD.TYPE_MESSAGE, label=ONE, type_name=".helloworld.Message")
    message.field.add(name="inners", number=10, type=FIELD.TYPE_MESSAGE, label=MANY, type_name=".helloworld.Message")
    message.field.add(
        name="counts", number=11, type=FIELD.TYPE_MESSAGE, label=MANY, type_name=".helloworld.Message.CountsEntry"
    )
    entry = message.nested_type.add(name="CountsEntry", options=descriptor_pb2.MessageOptions(map_entry=True))
    entry.field.add(name="key", number=1, type=FIELD.TYPE_STRING, label=ONE)
    entry.field.add(name="value", number=2, type=FIELD.TYPE_INT32, label=ONE)
    service = file.service.add(name="Greeter")
    for name, is_stream in (("SayHello", False), ("Watch", True)):
        service.method.add(
            name=name,
            input_type=".helloworld.Message",
            output_type=".helloworld.Message",
            server_streaming=is_stream,
        )
    return base64.b64encode(descriptor_pb2.FileDescriptorSet(file=[file]).SerializeToString()).decode()


PROTO = described()
NAMES = {"proto": PROTO, "proto_id": "1", "service": "helloworld.Greeter", "method": "SayHello"}
MESSAGE = find_method(PROTO, "helloworld.Greeter", "SayHello").request
NO_DEFAULTS = {"pb_option": ["no_default_values"]}
HEX = {"pb_option": ["int64_as_hexstring", "no_default_values"]}


def framed(message: Any) -> bytes:
    raw = message.SerializeToString()
    return b"\0" + len(raw).to_bytes(4, "big") + raw


def asking(method: str, target: str, body: Any = b"", kind: str = "application/json") -> Request:
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    return request(target, [("Content-Type", kind)], method=method, body=raw, content_length=len(raw))


async def called(given: Request, **config: Any) -> Any:
    """Return the message of the call that a request becomes; the status of the answer if it becomes none."""
    answer = await asked(chain(("grpc-transcode", {**NAMES, **config})), given)
    if answer is not None:
        return answer.status
    assert (given.method, given.target) == ("POST", "/helloworld.Greeter/SayHello")
    assert given.headers.get("Content-Type") == "application/grpc"
    assert given.body is not None
    message = MESSAGE.FromString(given.body[5:])
    assert given.body == framed(message)
    return message


FORM = "application/x-www-form-urlencoded"


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (asking("GET", "/grpctest?name=world&items=a&items=b"), {"name": "world", "items": ["a", "b"]}),
        (asking("POST", "/grpctest", b"name=world&small=-3", FORM), {"name": "world", "small": -3}),
        (asking("POST", "/grpctest", {"name": "world", "other": 1}), {"name": "world"}),
        (asking("GET", "/grpctest?a=2251799813685260"), {"a": 2251799813685260}),
        (asking("POST", "/x", {"a": "#-0x10", "share": 0.5, "is_on": True}), {"a": -16, "share": 0.5, "is_on": True}),
        (asking("GET", "/x?is_on=true&share=1e3&gender=2"), {"is_on": True, "share": 1000.0, "gender": 2}),
        (asking("POST", "/x", {"gender": "GENDER_MALE"}), {"gender": 1}),
        (asking("POST", "/x", {"raw": "é", "name": 5}), {"raw": "é".encode(), "name": "5"}),
        (asking("PUT", "/x", {"inner": {"inners": [{"name": "a"}]}}), {"inner": {"inners": [{"name": "a"}]}}),
        (asking("PATCH", "/x", {"counts": {"a": 1}}), {"counts": {"a": 1}}),
        (asking("POST", "/x"), {}),
        (asking("POST", "/x", {"gender": "GENDER_MA"}), 400),
        (asking("POST", "/x", {"small": 1 << 40}), 400),
        (asking("POST", "/x", {"small": 1.5}), 400),
        (asking("POST", "/x", {"inner": "a"}), 400),
        (asking("POST", "/x", {"items": [1, {}]}), 400),
        (asking("POST", "/x", b"{"), 400),
        (asking("POST", "/x", [1]), 400),
        (asking("GET", "/x?small=a"), 400),
    ],
)
async def test_a_request_becomes_a_call(given, expected) -> None:
    message = await called(given)
    assert message == (expected if isinstance(expected, int) else MESSAGE(**expected))


async def test_messages_within_messages_end_somewhere() -> None:
    deep: dict[str, Any] = {}
    for _ in range(100):
        deep = {"inner": deep}
    assert await called(asking("POST", "/x", deep)) == 400


async def test_the_service_is_told_its_deadline() -> None:
    given = asking("GET", "/x")
    await called(given, deadline=500)
    assert given.headers.get("grpc-timeout") == "500m"


async def replied(message: Any, headers: tuple[tuple[str, str], ...] = (), **config: Any) -> tuple[int, Any]:
    given = asking("GET", "/x")
    plugins = chain(("grpc-transcode", {**NAMES, **config}))
    assert await asked(plugins, given) is None
    upstream = Response(200, Headers([("Content-Type", "application/grpc"), *headers]), from_upstream=True)
    upstream.body = message if isinstance(message, bytes) else framed(message)
    answer = await answered(plugins, given, upstream)
    assert answer.status >= 500 or answer.headers.get("Content-Type") == "application/json"
    return answer.status, json.loads(answer.body or b"null") if answer.status < 502 else None


DEFAULTS = {"name": "", "a": 0, "small": 0, "is_on": False, "share": 0.0, "raw": "", "gender": "GENDER_UNKNOWN"}
EMPTY: dict[str, Any] = {"items": [], "inners": [], "counts": {}}


@pytest.mark.parametrize(
    ("message", "config", "expected"),
    [
        ({"name": "Hello world"}, {}, {**DEFAULTS, **EMPTY, "name": "Hello world"}),
        ({"name": "x"}, NO_DEFAULTS, {**EMPTY, "name": "x"}),
        ({"gender": 2}, NO_DEFAULTS, {**EMPTY, "gender": "GENDER_FEMALE"}),
        ({"gender": 2}, {"pb_option": ["enum_as_value", "no_default_values"]}, {**EMPTY, "gender": 2}),
        ({"gender": 9}, NO_DEFAULTS, {**EMPTY, "gender": 9}),
        ({"a": 2251799813685261}, NO_DEFAULTS, {**EMPTY, "a": 2251799813685261}),
        ({"a": 1 << 40}, {"pb_option": ["int64_as_string", "no_default_values"]}, {**EMPTY, "a": "#1099511627776"}),
        ({"a": 3}, {"pb_option": ["int64_as_string", "no_default_values"]}, {**EMPTY, "a": 3}),
        ({"a": -1 << 40}, HEX, {**EMPTY, "a": "#0xffffff0000000000"}),
        ({"share": float("inf")}, NO_DEFAULTS, {**EMPTY, "share": None}),
        (
            {"inner": {"items": ["a"]}, "counts": {"a": 1}},
            NO_DEFAULTS,
            {**EMPTY, "inner": {**EMPTY, "items": ["a"]}, "counts": {"a": 1}},
        ),
        ({"name": "x" * 20_000}, NO_DEFAULTS, {**EMPTY, "name": "x" * 20_000}),
    ],
)
async def test_a_message_becomes_json(message, config, expected) -> None:
    assert await replied(MESSAGE(**message), **config) == (200, expected)


@pytest.mark.parametrize(
    ("status", "expected"), [("1", 499), ("3", 400), ("4", 504), ("5", 404), ("14", 503), ("16", 401), ("99", 599)]
)
async def test_errors_of_the_service_are_statuses_of_http(status, expected) -> None:
    assert (await replied(b"", (("grpc-status", status),)))[0] == expected


async def test_details_of_an_error_may_be_in_the_body() -> None:
    status = status_message()(code=5, message="gone")
    status.details.add(type_url="x/helloworld.Message", value=MESSAGE(name="d").SerializeToString())
    header = base64.b64encode(status.SerializeToString()).decode().rstrip("=")
    headers = (("grpc-status", "5"), ("grpc-status-details-bin", header))
    assert await replied(b"", headers) == (404, None)
    told = {"code": 5, "message": "gone", "details": [{"type_url": "x/helloworld.Message", "value": "\n\x01d"}]}
    assert await replied(b"", headers, show_status_in_body=True) == (404, {"error": told})
    config = {"show_status_in_body": True, "status_detail_type": "helloworld.Message", **NO_DEFAULTS}
    assert await replied(b"", headers, **config) == (404, {"error": {**told, "details": [{**EMPTY, "name": "d"}]}})


@pytest.mark.parametrize(
    ("body", "config"),
    [
        (b"", {}),
        (b"\1" + framed(MESSAGE())[1:], {}),
        (framed(MESSAGE()) * 2, {}),
        (b"\0\0\0\0\2\xff\xff", {}),
        (framed(MESSAGE(name="x" * 100)), {"max_resp_body_size": 50}),
    ],
)
async def test_an_answer_that_is_no_message_is_a_502(body, config) -> None:
    assert (await replied(body, **config))[0] == 502


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"proto": None}, "needs proto"),
        ({"method": None}, "is required"),
        ({"method": "Other"}, "no method Other"),
        ({"method": "Watch"}, "stream of messages"),
        ({"service": "Greeter"}, "no service Greeter"),
        ({"proto": "%"}, "not in base64"),
        ({"proto": base64.b64encode(b"\xff").decode()}, "no descriptor set"),
        ({"status_detail_type": "x.Y"}, "no message x.Y"),
        ({"pb_option": ["enum_as_x"]}, "must be"),
    ],
)
def test_a_wrong_configuration_says_what_is_wrong(changes, told) -> None:
    config = {name: value for name, value in {**NAMES, **changes}.items() if value is not None}
    with pytest.raises(PluginFault, match=told):
        check_use(PluginUse(name="grpc-transcode", config=config))


class Greeter(grpc.GenericRpcHandler):
    """A service of the gRPC authors' library."""

    def service(self, call: Any) -> Any:
        return grpc.unary_unary_rpc_method_handler(self._say_hello) if call.method.endswith("/SayHello") else None

    async def _say_hello(self, raw: bytes, context: Any) -> bytes:
        asked = MESSAGE.FromString(raw)
        if asked.name == "nobody":
            await context.abort(grpc.StatusCode.NOT_FOUND, "gone")
        if asked.name == "slow":
            await asyncio.sleep(5)
        reply: bytes = MESSAGE(name=f"Hello {asked.name}").SerializeToString()
        return reply


async def test_a_service_is_called_through_the_proxy() -> None:
    server = grpc.aio.server(options=[("grpc.so_reuseport", 0)])
    server.add_generic_rpc_handlers((Greeter(),))
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    try:
        async with proxied(answering(OK)) as proxy, aiohttp.ClientSession() as client:
            proxy.target.pools = [proxy.pools.get("127.0.0.1", port, ConnectionSpec("h2c"))]
            proxy.target.policies = RoutePolicies()
            proxy.target.policies.hooks = RoutePlugins(
                chain(("grpc-transcode", {**NAMES, **NO_DEFAULTS, "deadline": 200}))
            )
            url = f"http://127.0.0.1:{proxy.port}/grpctest"
            async with client.post(url, json={"name": "world"}) as answer:
                assert (answer.status, await answer.json()) == (200, {**EMPTY, "name": "Hello world"})
            async with client.get(url, params={"name": "you"}) as answer:
                assert (await answer.json())["name"] == "Hello you"
            async with client.get(url, params={"name": "nobody"}) as answer:
                assert (answer.status, await answer.read()) == (404, b"")
            async with client.get(url, params={"name": "slow"}) as answer:
                assert answer.status == 504
    finally:
        await server.stop(None)
