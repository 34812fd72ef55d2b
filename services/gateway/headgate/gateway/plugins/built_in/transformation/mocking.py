"""`mocking`: answer without an upstream, with an example or with a body that is made up from a schema."""

import asyncio
import json
import random
import string
from collections.abc import Awaitable
from typing import Any, Final
from xml.sax.saxutils import escape

from headgate.common.plugins.transformation.mocking import MAX_ITEMS, MockingConfig
from headgate.gateway.plugins.interface import Headers, Plugin, PluginServices, Request, Response
from headgate.gateway.plugins.kit.patterns import Template

MOCKED: Final = "mocking.answered"
"""Variable of a request whose answer stands in for the upstream's."""


class Mocking(Plugin[MockingConfig]):
    """Answers by itself."""

    name = "mocking"
    order = 10900
    Config = MockingConfig
    is_shareable = True
    waits_for_consumer = True  # as Apache APISIX runs it in its phase `access`, behind those that recognise consumers

    def __init__(self, config: MockingConfig, services: PluginServices) -> None:
        super().__init__(config, services)
        self._example = Template(config.response_example) if config.response_example is not None else None
        self._headers = [(name, Template(value)) for name, value in config.response_headers.items()]

    def on_request(self, request: Request) -> Response | Awaitable[Response]:
        """Answer, at once or later."""
        return self._later(request) if self.config.delay else self._answer(request)

    def foresee(self, request: Request) -> Response:
        """Answer at once."""
        return self._answer(request)

    async def _later(self, request: Request) -> Response:
        await asyncio.sleep(self.config.delay)
        return self._answer(request)

    def _answer(self, request: Request) -> Response:
        request.variables[MOCKED] = True
        config = self.config
        headers = Headers([("Content-Type", config.content_type)])
        if config.with_mock_header:
            headers.set("x-mock-by", "headgate")
        for name, template in self._headers:
            headers.set(name, template.render(request))
        return Response(config.response_status, headers, self._body(request), reason="mocked")

    def _body(self, request: Request) -> bytes:
        if self._example is not None:
            return self._example.render(request).encode("latin-1")
        made = _made_up(self.config.response_schema)
        if "xml" in self.config.content_type:
            return f'<?xml version="1.0" encoding="UTF-8"?><data>{_xml(made)}</data>'.encode()
        return json.dumps(made).encode()


def _made_up(schema: Any) -> Any:
    """Make up a value that a schema takes."""
    if "example" in schema:
        return schema["example"]
    match schema.get("type", "object"):
        case "string":
            return "".join(random.choices(string.ascii_letters, k=random.randint(1, 10)))  # noqa: S311 - an example
        case "number":
            return round(random.uniform(0, 10_000), 2)  # noqa: S311
        case "integer":
            return random.randint(1, 10_000)  # noqa: S311
        case "boolean":
            return random.random() < 0.5  # noqa: S311
        case "array":
            return [_made_up(schema.get("items", {})) for _ in range(random.randint(1, MAX_ITEMS))]  # noqa: S311
        case _:
            return {name: _made_up(inner) for name, inner in schema.get("properties", {}).items()}


def _xml(value: Any) -> str:
    if isinstance(value, dict):
        return "".join(f"<{name}>{_xml(inner)}</{name}>" for name, inner in value.items())
    if isinstance(value, list):
        return "".join(f"<item>{_xml(inner)}</item>" for inner in value)
    return escape(str(value).lower() if isinstance(value, bool) else str(value))
