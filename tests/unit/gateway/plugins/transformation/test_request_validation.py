import pytest

from headgate.gateway.plugins.interface import Response
from headgate.gateway.plugins.interface.errors import PluginRefused
from unit.gateway.plugins.running import asked, chain, request

PERSON = {
    "type": "object",
    "required": ["name"],
    "properties": {"name": {"type": "string", "pattern": "^[a-z]+$"}, "age": {"type": "integer", "minimum": 18}},
}
FORM = [("Content-Type", "application/x-www-form-urlencoded; charset=utf-8")]


async def verdict(config, body: bytes = b"", headers=()) -> Response | None:
    given = request("/", headers, method="POST", body=body, content_length=len(body))
    return await asked(chain(("request-validation", config)), given)


@pytest.mark.parametrize(
    ("body", "told"),
    [
        (b'{"name":"jack","age":18}', None),
        (b'{"name":"jack","more":[1]}', None),
        (b'{"age":18}', b'"name" is a required property'),
        (b'{"name":"jack","age":17}', b"age: the value is less than the minimum of 18"),
        (b'{"name":"J1"}', b"name: "),
        (b"[]", b"body: "),
        (b'{"name"', b"no JSON"),
        (b"", b"there is no body"),
    ],
)
async def test_body_keeps_to_the_schema(body, told) -> None:
    response = await verdict({"body_schema": PERSON}, body)
    if told is None:
        assert response is None
    else:
        assert response is not None
        assert response.status == 400
        assert told in (response.body or b"")


async def test_refusal_does_not_repeat_what_was_sent() -> None:
    response = await verdict({"body_schema": PERSON}, b'{"name":"SECRET"}')
    assert response is not None
    assert b"SECRET" not in (response.body or b"")


async def test_form_is_an_object_of_texts() -> None:
    schema = {"required": ["a"], "properties": {"a": {"type": "string"}, "b": {"type": "array", "maxItems": 2}}}
    assert await verdict({"body_schema": schema}, b"a=1&b=1&b=2", FORM) is None
    assert await verdict({"body_schema": schema}, b"b=1&b=2&b=3", FORM) is not None


async def test_headers_are_found_in_any_case() -> None:
    schema = {"required": ["X-Kind"], "properties": {"X-Kind": {"enum": ["a", "b"]}}}
    assert await verdict({"header_schema": schema}, headers=[("x-KIND", "a")]) is None
    assert await verdict({"header_schema": schema}, headers=[("x-kind", "c")]) is not None
    assert await verdict({"header_schema": schema}) is not None


async def test_refusal_says_what_it_is_told_to() -> None:
    config = {"body_schema": PERSON, "rejected_code": 422, "rejected_msg": "customize reject message"}
    response = await verdict(config, b"{}")
    assert response is not None
    assert (response.status, response.body) == (422, b"customize reject message\n")


async def test_long_body_is_refused() -> None:
    response = await verdict({"body_schema": {}, "max_req_body_size": 3}, b"1234")
    assert response is not None
    assert response.status == 413


@pytest.mark.parametrize(
    ("config", "told"),
    [
        ({}, "needs header_schema or body_schema"),
        ({"body_schema": {"type": "thing"}}, r"config\.body_schema: is no JSON Schema"),
        ({"body_schema": {"properties": {"a": {"pattern": "("}}}}, "is no JSON Schema"),
        ({"body_schema": {"$ref": "http://localhost:1/x"}}, r"it must be a pointer: #/definitions/NAME"),
    ],
)
def test_schema_that_is_none_is_refused(config, told) -> None:
    with pytest.raises(PluginRefused, match=told):
        chain(("request-validation", config))


async def test_older_drafts_are_understood() -> None:
    tuples = {"items": [{"type": "integer"}, {"type": "string"}], "additionalItems": False}
    assert await verdict({"body_schema": tuples}, b'[1,"a"]') is None
    assert await verdict({"body_schema": tuples}, b'[1,"a",2]') is not None
    newer = {"$schema": "https://json-schema.org/draft/2020-12/schema", "prefixItems": [{"type": "integer"}]}
    assert await verdict({"body_schema": newer}, b'["a"]') is not None


async def sent(schema, body: bytes, headers=()) -> bytes | None:
    """Return the body that goes on; None for one that is refused."""
    given = request("/", headers, method="POST", body=body, content_length=len(body))
    refusal = await asked(chain(("request-validation", {"body_schema": schema})), given)
    assert given.content_length == len(given.body or b"")
    return given.body if refusal is None else None


KIND = {"type": "string", "enum": ["a", "b"], "default": "a"}


@pytest.mark.parametrize(
    ("schema", "body", "expected"),
    [
        ({"properties": {"kind": KIND}}, b"{}", b'{"kind":"a"}'),
        ({"properties": {"kind": KIND}}, b'{"kind":"b"}', b'{"kind":"b"}'),
        ({"properties": {"kind": KIND}}, b'{"kind":"c"}', None),
        ({"required": ["kind"], "properties": {"kind": KIND}}, b'{"x": 1}', b'{"x":1,"kind":"a"}'),
        ({"properties": {"in": {"properties": {"kind": KIND}}}}, b'{"in":{}}', b'{"in":{"kind":"a"}}'),
        ({"properties": {"in": {"properties": {"kind": KIND}}}}, b"{}", b"{}"),
        ({"items": {"properties": {"kind": KIND}}}, b'[{},{"kind":"b"}]', b'[{"kind":"a"},{"kind":"b"}]'),
        ({"allOf": [{"properties": {"kind": KIND}}]}, b"{}", b'{"kind":"a"}'),
        ({"properties": {"codes": {"default": [200, 302]}}}, b"{}", b'{"codes":[200,302]}'),
        (
            {
                "definitions": {"t": {"properties": {"n": KIND, "t": {"$ref": "#/definitions/t"}}}},
                "$ref": "#/definitions/t",
            },
            b'{"t":{"n":"b","t":{}}}',
            b'{"t":{"n":"b","t":{"n":"a"}},"n":"a"}',
        ),
    ],
)
async def test_defaults_are_written_into_json(schema, body, expected) -> None:
    assert await sent(schema, body) == expected


async def test_defaults_are_appended_to_a_form() -> None:
    schema = {"properties": {"kind": KIND, "n": {"default": 5}, "l": {"default": ["x", "y z"]}, "b": {"default": True}}}
    assert await sent(schema, b"q=%FF&n=1", FORM) == b"q=%FF&n=1&kind=a&l=x&l=y+z&b=true"
    assert await sent(schema, b"", FORM) == b"kind=a&n=5&l=x&l=y+z&b=true"


async def test_a_default_of_one_request_is_not_anothers() -> None:
    schema = {"properties": {"l": {"default": [], "items": {}}, "x": {"default": {}}}}
    plugins = chain(("request-validation", {"body_schema": schema}))
    bodies = []
    for _ in range(2):
        given = request("/", method="POST", body=b"{}", content_length=2)
        assert await asked(plugins, given) is None
        bodies.append(given.body)
    assert bodies == [b'{"l":[],"x":{}}'] * 2


async def test_the_upstream_reads_the_json_that_was_checked() -> None:
    schema = {"properties": {"role": {"const": "user"}}}
    assert await sent(schema, b'{"role":"admin","role":"user"}') == b'{"role":"user"}'
    assert await sent(schema, b'{"role":"user","role":"admin"}') is None


@pytest.mark.parametrize("body", [b'{"n":NaN}', b'{"n":1e999}', b'{"n":"\\ud800"}'])
async def test_what_cannot_be_written_as_json_is_refused(body) -> None:
    response = await verdict({"body_schema": {"type": "object"}}, body)
    assert response is not None
    assert response.status == 400


async def test_a_body_of_two_types_is_refused() -> None:
    headers = [("Content-Type", "application/json"), *FORM]
    assert await sent({"type": "object"}, b"{}", headers) is None


async def test_defaults_make_no_body_too_long() -> None:
    schema = {"items": {"properties": {"long": {"default": "x" * 60_000}}}}
    response = await verdict({"body_schema": schema}, b"[" + b",".join([b"{}"] * 200) + b"]")
    assert response is not None
    assert response.status == 413


async def test_a_schema_that_refers_to_itself_alone_refuses_and_does_not_hang() -> None:
    circle = {
        "definitions": {"a": {"$ref": "#/definitions/a", "default": 1}},
        "properties": {"a": {"$ref": "#/definitions/a"}},
    }
    assert await sent(circle, b'{"a":{}}') is None
