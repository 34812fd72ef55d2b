"""`oas-validator`: take only requests that an OpenAPI document has: path, parameters and body.

Bodies of JSON and forms are compared with their schemas, those of other types only with the types that are declared.
Of a body of JSON the upstream gets what was checked.
"""

import json
from collections.abc import Awaitable, Mapping
from typing import Any, Final
from urllib.parse import parse_qsl, unquote

from headgate.common.plugins.schema_work import MAX_WORK
from headgate.common.plugins.transformation.oas_validator import OasValidatorConfig
from headgate.common.plugins.transformation.openapi import Body, Checked, OpenApi, Operation, Parameter, Segment
from headgate.gateway.plugins.built_in.transformation.oas_validator.documents import Documents, NoDocument
from headgate.gateway.plugins.built_in.transformation.oas_validator.values import (
    Malformed,
    Texts,
    read_form,
    read_parameter,
)
from headgate.gateway.plugins.interface import Plugin, PluginServices, Request, Response

_MAX_BODY: Final = 8 << 20
_MAX_FIELDS: Final = 1024
_FORM: Final = "application/x-www-form-urlencoded"


class OasValidator(Plugin[OasValidatorConfig]):
    """Compares requests with a document."""

    name = "oas-validator"
    order = 512
    Config = OasValidatorConfig
    unforeseen = "may fetch the document first"

    def __init__(self, config: OasValidatorConfig, services: PluginServices) -> None:
        super().__init__(config, services)
        self._documents = Documents(config, services)

    def on_request(self, request: Request) -> Response | Awaitable[Response | None] | None:
        """Look for the operation, and at what it takes."""
        document = self._documents.at_hand
        return self._check(request, document) if document is not None else self._fetch_and_check(request)

    async def _fetch_and_check(self, request: Request) -> Response | None:
        try:
            outcome = self._check(request, await self._documents.get())
        except NoDocument as error:
            reason = f"oas-validator has no document: {error}"
            return Response.json(500, {"message": "failed to parse openapi spec"}, reason=reason)
        return await outcome if isinstance(outcome, Awaitable) else outcome

    def _check(self, request: Request, document: OpenApi) -> Response | Awaitable[Response | None] | None:
        found = find_operation(document, request.method, request.path)
        if found is None:
            return self._judge(request, "no operation of the document has this method and path")
        operation, in_path = found
        fault = self._fault_of_parameters(request, operation, in_path)
        if fault:
            return self._judge(request, fault)
        if operation.body is None or self.config.skip_request_body_validation:
            return None
        return self._check_body(request, operation.body)

    def _fault_of_parameters(self, request: Request, operation: Operation, in_path: Texts) -> str:
        config = self.config
        given: dict[str, Texts] = {}
        if not config.skip_path_params_validation:
            given["path"] = in_path
        if not config.skip_query_param_validation:
            try:
                given["query"] = _fields(request.query)
            except ValueError:
                return f"the query has more than {_MAX_FIELDS} parameters"
        if not config.skip_request_header_validation:
            given["header"] = _headers(request, operation)
        return next(filter(None, (_fault(one, given.get(one.place)) for one in operation.parameters)), "")

    async def _check_body(self, request: Request, body: Body) -> Response | None:
        kinds = request.headers.get_all("Content-Type")
        kind = kinds[0].partition(";")[0].strip().lower() if kinds else ""
        media = _media_of(body, kind)
        checked = body.content[media] if media is not None else None
        work = MAX_WORK // checked.size if checked is not None else _MAX_BODY
        raw = await request.read_body(min(self.config.max_req_body_size, _MAX_BODY, work))
        if not raw:
            return self._judge(request, "the body is required") if body.is_required else None
        if len(kinds) > 1 or (media is None and body.content):
            return self._judge(request, "the content type is not declared")
        try:
            fault = self._fault_of_body(request, raw, kind or media or "", checked) if checked is not None else ""
        except (ValueError, RecursionError):
            fault = "the body is not of its content type"
        return self._judge(request, fault) if fault else None

    def _fault_of_body(self, request: Request, raw: bytes, kind: str, checked: Checked) -> str:
        """Say what is wrong with a body; empty if nothing is. Raises ValueError, RecursionError."""
        if kind == _FORM:
            value: Any = read_form(_fields(raw.decode()), checked.schema)
        elif "json" in kind or kind == "*/*":
            value = json.loads(raw)
        else:
            return ""
        fault = _mismatch(checked, value) or _read_only(checked, value)
        if not fault and kind != _FORM and self.config.reject_if_not_match:
            written = json.dumps(value, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
            request.replace_body(written.encode())
        return f"body: {fault}" if fault else ""

    def _judge(self, request: Request, fault: str) -> Response | None:
        """Refuse a request, or only say in the log what is wrong with it."""
        config = self.config
        if not config.reject_if_not_match:
            asked = f"{request.method} {request.path}"
            self.services.logger.warning("oas-validator of %s: %s: %s", request.route, asked, fault)
            return None
        message = f"failed to validate request. {fault if config.verbose_errors else ''}"
        return Response.json(config.rejection_status_code, {"message": message}, reason=fault)


def find_operation(document: OpenApi, method: str, path: str) -> tuple[Operation, Texts] | None:
    """Return the operation of a request, with the parameters in its path."""
    parts = path.strip("/").split("/")
    for operation in document.operations.get((method, len(parts)), ()):
        found = _match(operation, parts)
        if found is not None:
            return operation, found
    return None


def _match(operation: Operation, parts: list[str]) -> Texts | None:
    found: dict[str, list[str]] = {}
    for expected, part in zip(operation.segments, parts, strict=True):
        if not isinstance(expected, Segment):
            if expected != part:
                return None
        elif not part:
            return None
        elif expected.pattern is None:
            found[expected.names[0]] = [unquote(part)]
        else:
            matched = expected.pattern.fullmatch(part.encode("latin-1"))
            if matched is None:
                return None
            texts = (group.decode("latin-1") if group is not None else "" for group in matched.groups())
            found.update({name: [unquote(text)] for name, text in zip(expected.names, texts, strict=True)})
    return found


def _fields(text: str) -> Texts:
    """Read a query or a form. Raises ValueError."""
    fields: dict[str, list[str]] = {}
    for name, value in parse_qsl(text, keep_blank_values=True, max_num_fields=_MAX_FIELDS):
        fields.setdefault(name, []).append(value)
    return fields


def _headers(request: Request, operation: Operation) -> Texts:
    """Return the headers that are parameters; several lines of one are one with commas."""
    names = (one.name for one in operation.parameters if one.place == "header")
    found = ((name, request.headers.get_all(name)) for name in names)
    return {name: [", ".join(values)] for name, values in found if values}


def _fault(parameter: Parameter, given: Texts | None) -> str:
    """Say what is wrong with a parameter; empty if nothing is."""
    if given is None:
        return ""
    place = f"{parameter.place} parameter {parameter.name}"
    try:
        value = read_parameter(parameter, given)
    except Malformed as error:
        return f"{place}: {error}"
    if value is None or value == "":
        if parameter.is_required:
            return f"{place}: required parameter is missing"
        if value is None:
            return ""
    fault = _mismatch(parameter.checked, value) if parameter.checked is not None else ""
    return f"{place}: {fault}" if fault else ""


def _media_of(body: Body, kind: str) -> str | None:
    """Return the declared media type that a body is of; None: there is none."""
    if not kind:
        return next((each for each in body.content if "json" in each or each == "*/*"), None)
    candidates = (kind, f"{kind.partition('/')[0]}/*", "*/*")
    return next((each for each in candidates if each in body.content), None)


def _mismatch(checked: Checked, value: Any) -> str:
    error = next(checked.validator.iter_errors(value), None)
    if error is None:
        return ""
    place = ".".join(map(str, error.instance_path))
    return f"{place}: {error.message}" if place else str(error.message)


def _read_only(checked: Checked, value: Any) -> str:
    """Say which field of a body only answers may have; empty for none."""
    properties = checked.schema.get("properties")
    for name, schema in properties.items() if isinstance(properties, Mapping) and isinstance(value, dict) else ():
        if name in value and isinstance(schema, Mapping) and schema.get("readOnly") is True:
            return f"readOnly property '{name}' should not be sent in request"
    return ""
