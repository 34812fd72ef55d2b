"""`degraphql`: make the GraphQL request of a REST one.

The query stands in the configuration; the request has the variables. A POST sends all of it as JSON, a GET in the query
of its URL. Other methods are answered with 405.
"""

import json
from typing import Any
from urllib.parse import parse_qsl, urlencode

from headgate.common.plugins.transformation.degraphql import DegraphqlConfig
from headgate.gateway.plugins.interface import Plugin, PluginServices, Request, Response

_MAX_BODY = 1 << 20
_MAX_FIELDS = 1024


class Degraphql(Plugin[DegraphqlConfig]):
    """Writes requests anew."""

    name = "degraphql"
    order = 509
    Config = DegraphqlConfig
    preview = "yes"

    def __init__(self, config: DegraphqlConfig, services: PluginServices) -> None:
        super().__init__(config, services)
        self._wanted = frozenset(config.variables)
        self._fixed = {"query": config.query}
        if config.operation_name is not None:
            self._fixed["operationName"] = config.operation_name

    def on_request(self, request: Request) -> Any:
        """Put the query into the request."""
        if request.method == "GET":
            return self._ask_by_get(request)
        if request.method != "POST":
            response = Response.refusal(405, "the plugin degraphql takes GET and POST")
            response.headers.set("Allow", "GET, POST")
            return response
        if self._wanted:
            return self._ask_with_variables(request)
        return self._post(request, self._fixed)

    def _ask_by_get(self, request: Request) -> Response | None:
        asked = dict(self._fixed)
        if self._wanted:
            try:
                pairs = parse_qsl(request.query, keep_blank_values=True, errors="strict", max_num_fields=_MAX_FIELDS)
            except ValueError:
                return Response.refusal(400, "the query has too many parameters, or one that is no UTF-8")
            # Of several values of one name the first.
            asked["variables"] = _json({name: value for name, value in reversed(pairs) if name in self._wanted})
        request.query = urlencode(asked)
        return None

    async def _ask_with_variables(self, request: Request) -> Response | None:
        raw = await request.read_body(_MAX_BODY)
        try:
            given = json.loads(raw)
        except (ValueError, RecursionError):
            given = None
        if not isinstance(given, dict):
            return Response.refusal(400, "the body is no JSON object, which has the variables")
        variables = {name: value for name, value in given.items() if name in self._wanted}
        return self._post(request, {**self._fixed, "variables": variables})

    def _post(self, request: Request, asked: dict[str, Any]) -> Response | None:
        request.headers.remove("Content-Encoding")
        request.headers.set("Content-Type", "application/json")
        request.replace_body(_json(asked).encode())
        return None


def _json(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))
