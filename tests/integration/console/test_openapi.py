"""The API against its own document: whatever is asked, the answer is one that the document has."""

import asyncio
import json
import random
from typing import Any
from urllib.parse import urlencode

import jsonschema_rs
import pytest

from fakes.console import Console, Got, console
from fakes.translator.deltas import endpoint_slice, ingress, service

OBJECTS = (ingress("web", host="a.example"), ingress("lost", host="b.example", service="gone"), service())
TEXTS = (
    *(
        "",
        "a",
        "a.example",
        "HEAD",
        "HEAD~1",
        "0",
        "-1",
        "1e400",
        "nan",
        "true",
        "null",
        "é",
        "\x00",
        "%",
        "'",
        '"><b>',
    ),
    *("../../etc/passwd", "a" * 5000, "ingress/default/web", "2026-01-01", "1h", "host|route", "\n", "{}", "[]", "*"),
)
EACH = 40
"""Random questions to each path, besides those of one value each."""
EACH_POSTED = 4
"""To those that begin a process for each."""


def values_of(schema: dict[str, Any], chance: random.Random) -> str:
    """Return a value that may or may not be one."""
    kind = schema["type"]
    right: list[object] = (
        list(schema.get("enum", ()))
        or {
            "string": list(TEXTS),
            "boolean": ["true", "false"],
            "integer": [schema.get("minimum", 0), schema.get("maximum", 10), 1, 2, 100],
            "number": [schema.get("minimum", 0), schema.get("maximum", 10), 0.5],
        }[kind]
    )
    return str(chance.choice(right if chance.random() < 0.8 else list(TEXTS)))


async def ask(made: Console, path: str, operation: dict[str, Any], query: str) -> Got:
    if "requestBody" not in operation:
        return await made.get(f"{path}?{query}")
    return await made.ask("POST", f"{path}?{query}", data=json.dumps(OBJECTS[0]), Content_Type="application/yaml")


async def judge(made: Console, path: str, operation: dict[str, Any], document: dict[str, Any], query: str) -> None:
    while (found := await ask(made, path, operation, query)).status == 429:  # noqa: ASYNC110 - as we are told
        await asyncio.sleep(float(found.headers["Retry-After"]))
    described = operation["responses"].get(str(found.status))
    assert described is not None, (path, query, found.status, found.text[:300])
    kind = found.headers["Content-Type"].partition(";")[0]
    schema = described["content"][kind]["schema"]
    whole = {**schema, "components": document["components"]}
    jsonschema_rs.validator_for(whole).validate(json.loads(found.body))


@pytest.mark.parametrize("seed", [1])
async def test_every_answer_is_one_that_the_document_has(seed: int) -> None:
    chance = random.Random(seed)
    async with console(*OBJECTS, endpoint_slice("web", "10.0.0.1")) as made:
        document = await made.api("/openapi.json")
        for path, methods in document["paths"].items():
            (operation,) = methods.values()
            rounds = EACH_POSTED if "requestBody" in operation else EACH
            if "text/event-stream" in operation["responses"]["200"]["content"]:
                continue
            parameters = operation["parameters"]
            for _ in range(rounds):
                asked = {
                    one["name"]: values_of(one["schema"], chance)
                    for one in parameters
                    if one["required"] or chance.random() < 0.5
                }
                await judge(made, path, operation, document, urlencode(asked))
            await judge(made, path, operation, document, "unknown=1")
