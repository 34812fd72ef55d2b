"""The document of OpenAPI, made of the questions."""

from collections.abc import Iterable
from typing import Any, Final

from headgate.common.release import release
from headgate.console.api.question import Question

PREFIX: Final = "/api/v1"
_PROBLEM: Final = {
    "type": "object",
    "required": ["status", "title", "detail"],
    "properties": {"status": {"type": "integer"}, "title": {"type": "string"}, "detail": {"type": "string"}},
}
_MANIFESTS: Final = {
    "required": True,
    "description": "Manifests as kubectl takes them",
    "content": {"application/yaml": {"schema": {"type": "string"}}},
}
_PAGE: Final = {
    "type": "object",
    "required": ["total", "next", "items"],
    "properties": {
        "total": {"type": ["integer", "null"]},
        "next": {"type": ["integer", "null"]},
        "items": {"type": "array", "items": {"type": "object"}},
    },
}


def document(questions: Iterable[Question]) -> dict[str, Any]:
    """Return the document."""
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Headgate",
            "version": release(),
            "description": "What is served, by whom, and why. Lists are paged by `limit` and `after`.",
        },
        "security": [{"token": []}, {}],
        "paths": {
            f"{PREFIX}{one.path}": {"post" if one.takes_manifests else "get": _operation(one)} for one in questions
        },
        "components": {
            "schemas": {"Problem": _PROBLEM, "Page": _PAGE},
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }


def _operation(question: Question) -> dict[str, Any]:
    schema: dict[str, Any] = {"$ref": "#/components/schemas/Page"} if question.is_list else {"type": "object"}
    is_stream = question.answer is None
    content = (
        {"text/event-stream": {"schema": {"type": "string"}}} if is_stream else {"application/json": {"schema": schema}}
    )
    problems = {
        "400": "asked for what cannot be",
        "401": "not logged in",
        "404": "there is no such thing",
        "429": "asked too often; Retry-After says when to ask again",
        "503": "no answer from the stores",
    }
    return {
        "operationId": question.path.strip("/").replace("/", "_"),
        "summary": question.about,
        **({"description": f"On the command line: `{question.command}`"} if question.command else {}),
        "parameters": [
            {
                "name": one.name,
                "in": "query",
                "required": one.is_required,
                "description": one.about,
                "schema": one.schema,
            }
            for one in question.all_parameters
        ],
        **({"requestBody": _MANIFESTS} if question.takes_manifests else {}),
        "responses": {
            "200": {"description": "The answer", "content": content},
            "304": {"description": "The answer is the one that If-None-Match names"},
            **{
                status: {
                    "description": about,
                    "content": {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}},
                }
                for status, about in problems.items()
            },
        },
    }
