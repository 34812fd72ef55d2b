"""Schemas that would make exponential work are refused; honest ones, recursive ones too, are not."""

from typing import Any

import pytest

from headgate.common.plugins.schema_work import schema_size
from headgate.common.plugins.transformation.request_validation import RequestValidationConfig, compile_schema

AT = "#/definitions/"


def doubling(levels: int) -> dict[str, Any]:
    """Make a schema by which one value is compared 2 to the power of `levels` times."""
    definitions: dict[str, Any] = {
        f"a{level}": {"allOf": [{"$ref": f"{AT}a{level + 1}"}] * 2} for level in range(levels)
    }
    return {"definitions": {**definitions, f"a{levels}": {"type": "string"}}, "$ref": f"{AT}a0"}


def circular(**definitions: Any) -> dict[str, Any]:
    return {"definitions": definitions, "$ref": f"{AT}A"}


SELF = {"$ref": f"{AT}A"}


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        (doubling(40), "must be nested at most 100 deep"),
        (doubling(20), "is too large: it must have at most 2000 keywords"),
        (circular(A={"allOf": [{"properties": {"x": SELF}}] * 2}), "of which several apply to one value"),
        (circular(A={"properties": {"x": SELF}, "patternProperties": {"x": SELF}}), "of which several apply"),
        (circular(A={"patternProperties": {"x": SELF, "y": SELF}}), "of which several apply"),
        (circular(A={"properties": {"x": {"$ref": f"{AT}B"}}, "items": SELF}, B={"allOf": [SELF, SELF]}), "several"),
        (
            circular(
                A={"allOf": [{"$ref": f"{AT}B"}, {"$ref": f"{AT}C"}]},
                B={"properties": {"x": SELF}},
                C={"properties": {"x": SELF}},
            ),
            "several",
        ),
        (circular(A={"allOf": [{"additionalProperties": SELF}, {"properties": {"x": SELF}}]}), "several"),
        (circular(A={"items": SELF, "contains": SELF}), "several"),
        (circular(A={"allOf": [{"items": [SELF]}, {"items": [SELF]}]}), "several"),
        ({"$ref": "https://example.com/x"}, "it must be a pointer"),
        ({"$ref": "#name"}, "it must be a pointer"),
        ({"$ref": f"{AT}none"}, "which leads nowhere"),
        ({"$dynamicRef": "#x"}, "must not have"),
        ({"definitions": {"A": {"$id": "x", "type": "string"}}, "allOf": [{"$id": "y"}]}, "must not have a"),
        ({"allOf": [{"type": "string"}] * 3000}, "is too large"),
    ],
)
def test_what_makes_too_much_work_is_refused(schema: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        compile_schema(schema)


@pytest.mark.parametrize(
    "schema",
    [
        {"properties": {"left": {"$ref": "#"}, "right": {"$ref": "#"}}},
        {
            "oneOf": [
                {"properties": {"and": {"items": {"$ref": "#"}}}},
                {"properties": {"or": {"items": {"$ref": "#"}}}},
            ]
        },
        circular(A={"properties": {"next": {"anyOf": [{"type": "null"}, SELF]}}}),
        circular(A={"items": [SELF, SELF]}),
        circular(A={"additionalProperties": SELF}),
        circular(**{"A": {"type": "string"}, "a/b~c": {"type": "string"}}) | {"items": {"$ref": f"{AT}a~1b~0c"}},
        {"allOf": [{"type": "string"}, {"type": "integer"}], "items": {"$ref": "#/allOf/1"}},
        doubling(5),
        {"properties": {"$id": {"type": "string"}}, "enum": [{"$ref": "no reference"}]},
    ],
)
def test_honest_schemas_are_taken(schema: dict[str, Any]) -> None:
    compile_schema(schema)


def test_references_count_each_time() -> None:
    once = schema_size(doubling(3))
    assert 2 * once - 8 <= schema_size(doubling(4)) <= 2 * once + 8


def test_long_bodies_are_for_small_schemas() -> None:
    def longest(schema: dict[str, Any], **more: int) -> int:
        return RequestValidationConfig.model_validate({"body_schema": schema, **more}).max_checked_body

    assert longest({"type": "object"}) == 8 << 20
    assert longest({"type": "object"}, max_req_body_size=10) == 10
    assert longest({"allOf": [{"type": "string"}] * 900}) < 60_000
