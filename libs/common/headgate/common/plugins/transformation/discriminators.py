"""Discriminators of OpenAPI: the value of a property says which of several schemas an object has to follow.

https://spec.openapis.org/oas/v3.1.0#discriminator-object. JSON Schema has no word for that, so `oneOf` and `anyOf` with
a discriminator become conditions: if the property has this value, then that schema holds, and other values are none.
Without this `oneOf` refuses what two schemas take, and `anyOf` takes what is right by another schema than that named.
"""

from collections.abc import Mapping
from typing import Any, Final

_CHOICES: Final = ("oneOf", "anyOf")
_VALUES: Final = frozenset(("const", "default", "enum", "example", "examples"))
"""Keywords that have values, not schemas."""
MAX_DEPTH: Final = 100


def with_discriminators(node: Any, schemas: str, depth: int = 0) -> Any:
    """Return a schema whose discriminators, and those within, are written as conditions.

    A discriminator counts where all the schemas to choose from are references to schemas with names, as the standard
    has it. That of a schema without a choice, which others extend by `allOf`, says nothing of the schema itself.

    Args:
        node: a schema, or a part of one.
        schemas: what references to schemas with names begin with.
        depth: at which the node is.

    Raises:
        ValueError: it is nested too deep.
    """
    if depth > MAX_DEPTH:
        raise ValueError(f"is nested more than {MAX_DEPTH} deep")
    if isinstance(node, list):
        return [with_discriminators(each, schemas, depth + 1) for each in node]
    if not isinstance(node, dict):
        return node
    made = {
        name: value if name in _VALUES else with_discriminators(value, schemas, depth + 1)
        for name, value in node.items()
    }
    choice = next((each for each in _CHOICES if isinstance(node.get(each), list)), None)
    chosen = _chosen(node, choice, schemas) if choice is not None else None
    if choice is None or chosen is None:
        return made
    name, references = chosen
    del made[choice]
    conditions = [
        {"if": {"properties": {name: {"const": value}}, "required": [name]}, "then": {"$ref": reference}}
        for value, reference in references.items()
    ]
    known = {"type": "object", "required": [name], "properties": {name: {"enum": list(references)}}}
    before = made.get("allOf")
    return {**made, "allOf": [*(before if isinstance(before, list) else ()), known, *conditions]}


def _chosen(node: Mapping[str, Any], choice: str, schemas: str) -> tuple[str, dict[str, str]] | None:
    """Return the property of a discriminator, and the reference for each of its values; None: there is none."""
    written = node.get("discriminator")
    name = written.get("propertyName") if isinstance(written, dict) else None
    branches = [each.get("$ref") if isinstance(each, dict) else None for each in node[choice]]
    if not isinstance(name, str) or not branches:
        return None
    references: dict[str, str] = {}
    for branch in branches:
        if not isinstance(branch, str) or not branch.startswith(schemas):
            return None
        references[branch.removeprefix(schemas)] = branch
    mapping = written.get("mapping") if isinstance(written, dict) else None
    for value, target in mapping.items() if isinstance(mapping, dict) else ():
        if not isinstance(target, str):
            continue
        reference = target if target.startswith("#") else f"{schemas}{target}"
        if reference in branches:
            references[value] = reference
        else:
            # It names no schema of the choice, so that nothing with this value is right.
            references.pop(value, None)
    return name, references
