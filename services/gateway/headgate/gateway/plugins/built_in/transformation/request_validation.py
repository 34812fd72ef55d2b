"""`request-validation`: take only requests whose headers and body keep to a JSON Schema."""

import json
from typing import Any
from urllib.parse import parse_qsl, urlencode

from headgate.common.plugins.transformation.request_validation import RequestValidationConfig, compile_schema
from headgate.gateway.plugins.built_in.transformation.schema_defaults import Defaults
from headgate.gateway.plugins.interface import Plugin, PluginServices, Request, Response

_MAX_FIELDS = 1024


class RequestValidation(Plugin[RequestValidationConfig]):
    """Checks requests."""

    name = "request-validation"
    order = 2800
    Config = RequestValidationConfig
    preview = "yes"
    is_shareable = True

    def __init__(self, config: RequestValidationConfig, services: PluginServices) -> None:
        super().__init__(config, services)
        self._headers = compile_schema(config.header_schema) if config.header_schema is not None else None
        self._names = _spelled(config.header_schema) if config.header_schema is not None else {}
        self._body = compile_schema(config.body_schema) if config.body_schema is not None else None
        self._defaults = Defaults(config.body_schema or {})
        self._max_body = config.max_checked_body

    def on_request(self, request: Request) -> Any:
        """Check the headers, then the body."""
        if self._headers is not None:
            fault = _fault(self._headers, self._read_headers(request))
            if fault:
                return self._refusal(f"headers: {fault}")
        return self._check_body(request) if self._body is not None else None

    async def _check_body(self, request: Request) -> Response | None:
        raw = await request.read_body(self._max_body)
        types = request.headers.get_all("Content-Type")
        if len(types) > 1:
            return self._refusal("the body has several types")
        is_form = _is_form(types[0] if types else "")
        try:
            body = _read_form(raw) if is_form else json.loads(raw)
            names = frozenset(body) if is_form else frozenset()
            is_filled = not self._defaults.is_empty and self._defaults.fill(body)
        except (ValueError, RecursionError):
            return self._refusal("the body is no JSON" if raw else "there is no body")
        fault = _fault(self._body, body)
        if fault:
            return self._refusal(f"body: {fault}")
        if is_form:
            if is_filled:
                added = {name: value for name, value in body.items() if name not in names}
                request.replace_body(_with_fields(raw, added))
            return None
        try:
            request.replace_body(_written(body))
        except ValueError:
            return self._refusal("the body has numbers or texts that are no JSON")
        return None

    def _read_headers(self, request: Request) -> dict[str, str]:
        headers: dict[str, str] = {}
        for name, value in request.headers:
            spelled = self._names.get(name.lower(), name.lower())
            headers[spelled] = f"{headers[spelled]}, {value}" if spelled in headers else value
        if request.authority:
            headers[self._names.get("host", "host")] = request.authority
        return headers

    def _refusal(self, fault: str) -> Response:
        config = self.config
        return Response.text(config.rejected_code, f"{config.rejected_msg or fault}\n", reason=fault)


def _spelled(schema: Any) -> dict[str, str]:
    """Return the names of headers in a schema by their lower case: headers have names in any case."""
    names = [*schema.get("properties", {}), *schema.get("required", ())]
    return {str(name).lower(): str(name) for name in names}


def _is_form(content_type: str) -> bool:
    return content_type.partition(";")[0].strip().lower() == "application/x-www-form-urlencoded"


def _written(body: Any) -> bytes:
    """Write JSON: the upstream reads what was checked, also of names that stood there twice. Raises ValueError."""
    return json.dumps(body, separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode()


def _read_form(raw: bytes) -> dict[str, Any]:
    """Read the fields of a form, several of one name as a list. Raises ValueError."""
    fields: dict[str, Any] = {}
    for name, value in parse_qsl(raw.decode(), keep_blank_values=True, max_num_fields=_MAX_FIELDS):
        before = fields.get(name)
        fields[name] = value if before is None else [*(before if isinstance(before, list) else [before]), value]
    return fields


def _with_fields(raw: bytes, fields: dict[str, Any]) -> bytes:
    """Append fields to a form, as text where they are text and else as JSON; of a list each member."""
    pairs = [
        (name, each if isinstance(each, str) else json.dumps(each))
        for name, value in fields.items()
        for each in (value if isinstance(value, list) else [value])
    ]
    return b"&".join(filter(None, (raw, urlencode(pairs).encode())))


def _fault(validator: Any, value: Any) -> str:
    """Say what is wrong with a value, and where, without the value; empty if nothing is."""
    error = next(validator.iter_errors(value), None)
    if error is None:
        return ""
    place = ".".join(map(str, error.instance_path))
    return f"{place}: {error.message}" if place else str(error.message)
