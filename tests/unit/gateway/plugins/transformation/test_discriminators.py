"""Discriminators of OpenAPI documents, by requests that `oas-validator` compares with them."""

import json
from typing import Any

import pytest

from headgate.common.plugins.transformation.discriminators import with_discriminators
from unit.gateway.plugins.running import asked, chain, request

SCHEMAS = "#/components/schemas/"


def animal(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "required": list(properties), "properties": properties}


ANIMALS = {
    "Cat": animal(lives={"type": "integer"}),
    "Dog": animal(bark={"type": "string"}),
    "Any": {"type": "object"},
}


def choice(*names: str, kind: str = "oneOf", **fields: Any) -> dict[str, Any]:
    discriminator = {"propertyName": "kind", **fields}
    return {kind: [{"$ref": f"{SCHEMAS}{name}"} for name in names], "discriminator": discriminator}


async def is_taken(schema: Any, body: Any, version: str = "3.1.0") -> bool:
    operation = {"requestBody": {"required": True, "content": {"application/json": {"schema": schema}}}}
    document = {"openapi": version, "paths": {"/a": {"post": operation}}, "components": {"schemas": ANIMALS}}
    plugins = chain(("oas-validator", {"spec": json.dumps(document)}))
    raw = json.dumps(body).encode()
    given = request("/a", [("Content-Type", "application/json")], method="POST", body=raw, content_length=len(raw))
    return await asked(plugins, given) is None


@pytest.mark.parametrize("version", ["3.0.3", "3.1.0"])
@pytest.mark.parametrize("kind", ["oneOf", "anyOf"])
@pytest.mark.parametrize(
    ("body", "taken"),
    [
        ({"kind": "Cat", "lives": 9}, True),
        ({"kind": "Dog", "bark": "wow"}, True),
        ({"kind": "Cat", "bark": "wow"}, False),
        ({"kind": "Cat", "lives": "nine"}, False),
        ({"kind": "Dog", "lives": 9}, False),
        ({"kind": "Bird", "lives": 9}, False),
        ({"kind": 1, "lives": 9}, False),
        ({"lives": 9}, False),
        ("Cat", False),
    ],
)
async def test_the_value_of_the_property_names_the_schema(version: str, kind: str, body: Any, taken: bool) -> None:
    assert await is_taken(choice("Cat", "Dog", kind=kind), body, version) is taken


async def test_an_object_that_several_schemas_take_is_right_by_the_named_one() -> None:
    assert await is_taken(choice("Cat", "Any"), {"kind": "Cat", "lives": 9})
    assert await is_taken({"oneOf": choice("Cat", "Any")["oneOf"]}, {"kind": "Cat", "lives": 9}) is False


@pytest.mark.parametrize(
    ("mapping", "kind", "taken"),
    [
        ({"feline": f"{SCHEMAS}Cat"}, "feline", True),
        ({"feline": "Cat"}, "feline", True),
        ({"feline": "Cat"}, "Cat", True),
        ({"feline": f"{SCHEMAS}Gone"}, "feline", False),
        ({"Cat": "Dog"}, "Cat", False),
        ({"feline": "cats.json"}, "feline", False),
        ({"feline": 1}, "feline", False),
    ],
)
async def test_a_mapping_gives_schemas_other_names(mapping: Any, kind: str, taken: bool) -> None:
    assert await is_taken(choice("Cat", "Dog", mapping=mapping), {"kind": kind, "lives": 9}) is taken


async def test_choices_within_schemas_and_lists_are_followed() -> None:
    schema = {"type": "array", "items": {"properties": {"pet": choice("Cat", "Any")}}}
    assert await is_taken(schema, [{"pet": {"kind": "Cat", "lives": 9}}])
    assert not await is_taken(schema, [{"pet": {"kind": "Cat", "lives": "nine"}}])


async def test_what_stands_beside_a_choice_holds_too() -> None:
    schema = {**choice("Cat", "Dog"), "allOf": [{"required": ["name"]}], "maxProperties": 3}
    assert await is_taken(schema, {"kind": "Cat", "lives": 9, "name": "a"})
    assert not await is_taken(schema, {"kind": "Cat", "lives": 9})
    assert not await is_taken(schema, {"kind": "Cat", "lives": 9, "name": "a", "more": 1})


async def test_null_is_taken_where_3_0_says_so() -> None:
    assert await is_taken({**choice("Cat", "Dog"), "nullable": True}, None, "3.0.3")


@pytest.mark.parametrize(
    "schema",
    [
        {"oneOf": [{"$ref": f"{SCHEMAS}Cat"}, {"type": "null"}], "discriminator": {"propertyName": "kind"}},
        {"oneOf": [{"$ref": f"{SCHEMAS}Cat"}], "discriminator": {}},
        {"oneOf": [], "discriminator": {"propertyName": "kind"}},
        {"type": "object", "discriminator": {"propertyName": "kind"}},
        {"enum": [{"oneOf": [{"$ref": f"{SCHEMAS}Cat"}], "discriminator": {"propertyName": "kind"}}]},
        {"properties": {"discriminator": {"type": "string"}, "oneOf": {"type": "string"}}},
        True,
    ],
    ids=str,
)
def test_what_is_no_choice_of_schemas_with_names_stays_as_it_is(schema: Any) -> None:
    assert with_discriminators(schema, SCHEMAS) == schema


def test_a_schema_that_is_nested_too_deep_is_refused() -> None:
    schema: Any = {}
    for _ in range(120):
        schema = {"not": schema}
    with pytest.raises(ValueError, match="nested more than"):
        with_discriminators(schema, SCHEMAS)
