"""Requests beside OpenAPI documents, by the cases of Apache APISIX (t/plugin/oas-validator*.t)."""

import json
from dataclasses import replace
from typing import Any

import pytest
from aiohttp import web

from headgate.common.plugins.checking import check_use
from headgate.common.plugins.errors import PluginFault
from headgate.common.table import PluginUse
from headgate.gateway.plugins.interface import PluginServices, Request, Response
from unit.gateway.plugins.running import Clock, asked, chain, request
from unit.gateway.plugins.service import Seen, running

PET = {
    "type": "object",
    "required": ["name", "photoUrls"],
    "properties": {
        "id": {"type": "integer", "format": "int64"},
        "name": {"type": "string", "nullable": True},
        "category": {"$ref": "#/components/schemas/Category"},
        "photoUrls": {"type": "array", "items": {"type": "string"}},
        "weight": {"type": "number", "minimum": 0, "exclusiveMinimum": True},
        "made": {"type": "string", "readOnly": True},
    },
}
STATUS = {"name": "status", "in": "query", "schema": {"type": "string", "enum": ["available", "pending", "sold"]}}
OLD = {
    "openapi": "3.0.2",
    "servers": [{"url": "https://x.example/api/{v}/", "variables": {"v": {"default": "v3"}}}],
    "paths": {
        "/pet": {
            "post": {"requestBody": {"$ref": "#/components/requestBodies/Pet"}},
            "put": {"requestBody": {"content": {"application/json": {"schema": PET}, "text/*": {}}}},
        },
        "/pet/findByStatus": {"get": {"parameters": [STATUS]}},
        "/pet/{petId}": {
            "parameters": [{"name": "petId", "in": "path", "schema": {"type": "integer"}}],
            "get": {},
            "delete": {
                "parameters": [{"name": "X-Key", "in": "header", "required": True, "schema": {"type": "boolean"}}]
            },
        },
        "/file/{name}.{kind}": {
            "get": {"parameters": [{"name": "kind", "in": "path", "schema": {"enum": ["png", "jpg"]}}]}
        },
        "/form": {
            "post": {
                "requestBody": {
                    "content": {
                        "application/x-www-form-urlencoded": {
                            "schema": {
                                "required": ["a"],
                                "properties": {
                                    "a": {"type": "integer"},
                                    "b": {"type": "array", "items": {"type": "boolean"}},
                                },
                            }
                        }
                    }
                }
            }
        },
    },
    "components": {
        "requestBodies": {
            "Pet": {
                "required": True,
                "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Pet"}}},
            }
        },
        "schemas": {
            "Pet": PET,
            "Category": {
                "properties": {"id": {"type": "integer"}, "parent": {"$ref": "#/components/schemas/Category"}}
            },
        },
    },
}


def asking(method: str, target: str, body: Any = b"", kind: str = "application/json", **headers: str) -> Request:
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    listed = [*(((("Content-Type", kind),)) if kind else ()), *headers.items()]
    return request(target, listed, method=method, body=raw, content_length=len(raw))


async def answer(given: Request, spec: Any = OLD, **config: Any) -> Response | None:
    return await asked(chain(("oas-validator", {"spec": json.dumps(spec), **config})), given)


async def fault(given: Request, spec: Any = OLD, **config: Any) -> str:
    refused = await answer(given, spec, verbose_errors=True, **config)
    if refused is None:
        return ""
    assert refused.status == 400
    message = str(json.loads(refused.body or b"")["message"])
    return message.removeprefix("failed to validate request. ")


GOOD = {"id": 10, "name": "doggie", "category": {"id": 1, "parent": {"id": 2}}, "photoUrls": ["a"], "weight": 1}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (asking("POST", "/api/v3/pet", GOOD), ""),
        (asking("POST", "/api/v3/pet/", {**GOOD, "name": None}), ""),
        (asking("POST", "/api/v3/pet", {"lol": "watdis?"}), '"name" is a required property'),
        (asking("POST", "/api/v3/pet", {**GOOD, "weight": 0}), "weight: "),
        (asking("POST", "/api/v3/pet", {**GOOD, "category": {"parent": {"id": "x"}}}), "category.parent.id: "),
        (asking("POST", "/api/v3/pet", {**GOOD, "made": "x"}), "readOnly property 'made'"),
        (asking("POST", "/api/v3/pet", b"{"), "the body is not of its content type"),
        (asking("POST", "/api/v3/pet", b'{"weight": NaN}'), "is a required property"),
        (asking("POST", "/api/v3/pet", b""), "the body is required"),
        (asking("POST", "/api/v3/pet", GOOD, "application/xml"), "the content type is not declared"),
        (asking("POST", "/api/v3/pet", GOOD, ""), ""),
        (asking("PUT", "/api/v3/pet", b""), ""),
        (asking("PUT", "/api/v3/pet", b"any", "text/plain"), ""),
        (asking("GET", "/api/v3/pet/findByStatus?status=pending"), ""),
        (asking("GET", "/api/v3/pet/findByStatus?status=married"), "query parameter status: "),
        (asking("GET", "/api/v3/pet/10"), ""),
        (asking("GET", "/api/v3/pet/wrong-id"), "path parameter petId: "),
        (asking("DELETE", "/api/v3/pet/10", b""), "header parameter X-Key: required parameter is missing"),
        (asking("DELETE", "/api/v3/pet/10", b"", **{"x-key": "true"}), ""),
        (asking("DELETE", "/api/v3/pet/10", b"", **{"x-key": "maybe"}), "header parameter X-Key: "),
        (asking("GET", "/api/v3/file/a%2Fb.png"), ""),
        (asking("GET", "/api/v3/file/a.gif"), "path parameter kind: "),
        (asking("POST", "/api/v3/form", b"a=1&b=true&b=0", "application/x-www-form-urlencoded"), ""),
        (asking("POST", "/api/v3/form", b"b=true", "application/x-www-form-urlencoded"), '"a" is a required'),
        (asking("GET", "/pet/10"), "no operation of the document"),
        (asking("PATCH", "/api/v3/pet"), "no operation of the document"),
    ],
)
async def test_requests_are_compared_with_their_operation(given, expected) -> None:
    told = await fault(given)
    assert expected in told if expected else told == ""


@pytest.mark.parametrize(
    ("given", "config"),
    [
        (asking("POST", "/api/v3/pet", {"lol": 1}), {"skip_request_body_validation": True}),
        (asking("DELETE", "/api/v3/pet/10", b""), {"skip_request_header_validation": True}),
        (asking("GET", "/api/v3/pet/findByStatus?status=married"), {"skip_query_param_validation": True}),
        (asking("GET", "/api/v3/pet/wrong-id"), {"skip_path_params_validation": True}),
        (asking("POST", "/api/v3/pet", {"lol": 1}), {"reject_if_not_match": False, "rejection_status_code": 503}),
    ],
)
async def test_parts_may_be_left_unchecked(given, config) -> None:
    assert await answer(given, **config) is None


async def test_clients_are_told_no_more_than_that_by_default() -> None:
    refused = await answer(asking("POST", "/api/v3/pet", {"lol": 1}), rejection_status_code=422)
    assert refused is not None
    assert (refused.status, json.loads(refused.body or b"")) == (422, {"message": "failed to validate request. "})


async def test_the_upstream_gets_what_was_checked() -> None:
    given = asking("POST", "/api/v3/pet", b'{"name": 1, "name": "x", "photoUrls": []}')
    assert await answer(given) is None
    assert given.body == b'{"name":"x","photoUrls":[]}'


def new(**operation: Any) -> dict[str, Any]:
    return {"openapi": "3.1.0", "paths": {"/a": {"post": operation}}}


def taking(schema: Any) -> dict[str, Any]:
    return new(requestBody={"content": {"application/json": {"schema": schema}}})


@pytest.mark.parametrize(
    ("schema", "good", "bad"),
    [
        ({"type": "integer", "exclusiveMinimum": 0, "exclusiveMaximum": 100}, 50, 0),
        ({"oneOf": [{"required": ["cat"]}, {"required": ["dog"]}]}, {"cat": 1}, {"cat": 1, "dog": 1}),
        ({"if": {"required": ["r"]}, "then": {"required": ["x"]}}, {"r": 1, "x": 1}, {"r": 1}),
        ({"type": ["string", "null"]}, None, 1),
        ({"prefixItems": [{"type": "integer"}], "unevaluatedItems": False}, [1], [1, 2]),
    ],
)
async def test_schemas_of_3_1_are_those_of_2020_12(schema, good, bad) -> None:
    assert await fault(asking("POST", "/a", good), taking(schema)) == ""
    assert await fault(asking("POST", "/a", bad), taking(schema)) != ""


INTEGERS = {"type": "array", "items": {"type": "integer"}}
POINT = {"type": "object", "properties": {"x": {"type": "integer"}}, "required": ["x"]}


@pytest.mark.parametrize(
    ("parameter", "good", "bad"),
    [
        ({"schema": INTEGERS}, "p=1&p=2", "p=1&p=x"),
        ({"schema": INTEGERS, "explode": False}, "p=1,2", "p=1,x"),
        ({"schema": INTEGERS, "style": "pipeDelimited"}, "p=1%7C2", "p=1%7Cx"),
        ({"schema": INTEGERS, "style": "spaceDelimited"}, "p=1%202", "p=1%20x"),
        ({"schema": POINT, "style": "deepObject"}, "p[x]=1", "p[x]=a"),
        ({"schema": POINT, "style": "deepObject"}, "", "p[x][y]=1"),
        ({"schema": POINT, "explode": False}, "p=x,1", "p=x,a"),
        ({"schema": POINT}, "x=1", "x=a"),
        ({"content": {"application/json": {"schema": POINT}}}, 'p={"x":1}', "p={"),
        ({"schema": {"type": "boolean"}}, "p=1", "p=2"),
        ({"schema": {"anyOf": [{"type": "integer"}, {"enum": ["a"]}]}}, "p=-1.0e1", "p=b"),
        ({"schema": {"type": "integer"}, "required": True}, "p=1", ""),
    ],
)
async def test_parameters_are_read_by_their_styles(parameter, good, bad) -> None:
    spec = new(parameters=[{"name": "p", "in": "query", **parameter}])
    assert await fault(asking("POST", f"/a?{good}"), spec) == ""
    assert "query parameter p: " in await fault(asking("POST", f"/a?{bad}"), spec)


async def test_a_document_is_fetched_and_kept() -> None:
    documents = [web.json_response(OLD), web.json_response({}, status=500), web.json_response(taking({"const": 1}))]

    def serve(seen: Seen) -> web.StreamResponse:
        assert seen.headers["X-Auth"] == "geheim"
        return documents.pop(0)

    clock = Clock()
    async with running(serve) as service:
        config = {"spec_url": f"{service.url}/spec", "spec_url_request_headers": {"X-Auth": "geheim"}}
        plugins = chain(("oas-validator", config), services=replace(service.services, clock=clock))
        for _ in range(2):
            assert await asked(plugins, asking("GET", "/api/v3/pet/10")) is None
        assert len(service.seen) == 1
        clock.now += 3600
        assert await asked(plugins, asking("GET", "/api/v3/pet/10")) is None  # the old one, as there is no other
        clock.now += 5
        refused = await asked(plugins, asking("GET", "/api/v3/pet/10"))
        assert refused is not None
        assert refused.status == 400
        assert await asked(plugins, asking("POST", "/a", 1)) is None


@pytest.mark.parametrize(
    "reply", [web.Response(status=404), web.Response(text="{"), web.Response(text='{"openapi": "2.0"}')]
)
async def test_without_a_document_requests_are_refused(reply: web.Response) -> None:
    async with running(lambda seen: reply) as service:
        config = {"spec_url": f"{service.url}/spec"}
        refused = await asked(chain(("oas-validator", config), services=service.services), asking("GET", "/a"))
    assert refused is not None
    assert (refused.status, json.loads(refused.body or b"")) == (500, {"message": "failed to parse openapi spec"})


CIRCLE = {"allOf": [{"$ref": "#/components/schemas/A"}], "anyOf": [{"$ref": "#/components/schemas/A"}]}


@pytest.mark.parametrize(
    "config",
    [
        {},
        {"spec": "{}", "spec_url": "http://a"},
        {"spec": "invalid json string"},
        {"spec": "{}"},
        {"spec": '{"openapi": "2.0"}'},
        {"spec_url": "ftp://a"},
        {"spec": json.dumps(OLD), "rejection_status_code": 399},
        {"spec": json.dumps(OLD), "rejection_status_code": 600},
        {"spec": json.dumps(taking({"type": 1}))},
        {"spec": json.dumps(taking({"$ref": "#/components/schemas/None"}))},
        {"spec": json.dumps(taking({"$ref": "http://a/b"}))},
        {"spec": json.dumps(taking({"pattern": "(?=a)"}))},
        {"spec": json.dumps(taking({"properties": {str(number): {} for number in range(3000)}}))},
        {"spec": json.dumps({**taking({"$ref": "#/components/schemas/A"}), "components": {"schemas": {"A": CIRCLE}}})},
        {"spec": json.dumps({"openapi": "3.0.0", "paths": {f"/{number}": {"get": {}} for number in range(501)}})},
        {"spec": json.dumps(new(parameters=[{"$ref": "#/paths/~1a/post/parameters/0"}]))},
    ],
)
def test_a_wrong_configuration_is_refused(config) -> None:
    with pytest.raises(PluginFault):
        check_use(PluginUse(name="oas-validator", config=config))


def test_a_document_without_paths_takes_nothing() -> None:
    chain(("oas-validator", {"spec": '{"openapi": "3.0.0"}'}), services=PluginServices())
