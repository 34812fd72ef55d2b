"""`opa`: ask Open Policy Agent whether a request may pass.

It is asked for `/v1/data/<policy>` with `{"input": {"type": "http", "request": {...}, "var": {...}}}`, and decides by
`{"result": {"allow": true, "headers": {...}, "status_code": 403, "reason": ...}}`. Without a decision no request
passes.
"""

import json
import time
from typing import Any
from urllib.parse import parse_qsl

from headgate.common.plugins.fields import BadHeader
from headgate.common.plugins.security.opa import OpaConfig
from headgate.common.table import HostKey
from headgate.gateway.plugins.interface import Headers, Plugin, Request, Response
from headgate.gateway.plugins.kit.calls import CallFailed, call_url
from headgate.gateway.plugins.kit.decoded_paths import decoded_text

_MAX_ANSWER = 1 << 20


class Opa(Plugin[OpaConfig]):
    """Asks for a decision."""

    name = "opa"
    order = 2001
    unforeseen = "asks another service"
    Config = OpaConfig
    is_shareable = True

    async def on_request(self, request: Request) -> Response | None:
        """Ask, and refuse or go on."""
        config = self.config
        headers = Headers([("Content-Type", "application/json")])
        question = Request(
            method="POST", headers=headers, body=json.dumps({"input": await self._input(request)}).encode()
        )
        url = f"{config.host}/v1/data/{config.policy}"
        try:
            answer = await call_url(
                self.services,
                url,
                question,
                timeout_s=config.timeout / 1000,
                max_body=_MAX_ANSWER,
                verify=config.ssl_verify,
            )
        except CallFailed as error:
            self.services.logger.error("opa of %s: %s", request.route, error)
            return Response.refusal(403, "the policy agent did not answer")
        result = _result(answer)
        if result is None:
            self.services.logger.error("opa of %s: %s has no decision, status %d", request.route, url, answer.status)
            return Response.refusal(503, "the policy agent has no decision")
        decided = _headers(result)
        if result.get("allow") is not True:
            return _refusal(result, decided)
        for name in config.send_headers_upstream:
            request.headers.remove(name)
            if name.lower() in decided:
                request.headers.set(name, decided[name.lower()])
        return None

    async def _input(self, request: Request) -> dict[str, Any]:
        config = self.config
        told: dict[str, Any] = {
            "type": "http",
            "request": {
                "scheme": request.scheme,
                "method": request.method,
                "host": request.host,
                "port": request.port,
                "path": decoded_text(request.path),
                "headers": {
                    **({"host": request.authority} if request.authority else {}),
                    **{name.lower(): request.headers.get(name) for name, _ in request.headers},
                },
                "query": _query(request.query),
            },
            "var": {"remote_addr": request.client, "server_port": str(request.port), "timestamp": int(time.time())},
        }
        if config.with_route:
            host, _, name = request.route.partition("|")
            told["route"] = {"id": request.route, "name": name, "host": HostKey.read(host).host}
        if config.with_service:
            told["service"] = {"id": request.upstreams, "upstreams": request.upstreams.split(",")}
        consumer = request.consumer
        if config.with_consumer and consumer is not None:
            told["consumer"] = {"username": consumer.name, "labels": dict(consumer.labels)}
            if consumer.group:
                told["consumer"]["group_id"] = consumer.group
        if config.with_body:
            told["request"]["body"] = _body(await request.read_body(config.max_req_body_size))
        return told


def _query(query: str) -> dict[str, Any]:
    """Return the parameters; of several values of one name a list."""
    found: dict[str, Any] = {}
    for name, value in parse_qsl(query, keep_blank_values=True):
        if name not in found:
            found[name] = value
        elif isinstance(found[name], list):
            found[name].append(value)
        else:
            found[name] = [found[name], value]
    return found


def _body(raw: bytes) -> Any:
    try:
        return json.loads(raw)
    except (ValueError, RecursionError):
        return raw.decode("utf-8", "replace")


def _result(answer: Response) -> dict[str, Any] | None:
    try:
        content = json.loads(answer.body or b"")
    except ValueError:
        return None
    result = content.get("result") if isinstance(content, dict) else None
    return result if answer.status == 200 and isinstance(result, dict) else None


def _headers(result: dict[str, Any]) -> dict[str, str]:
    """Return the headers of a decision by their names in lower case."""
    headers = result.get("headers")
    return {name.lower(): str(value) for name, value in headers.items()} if isinstance(headers, dict) else {}


def _refusal(result: dict[str, Any], headers: dict[str, str]) -> Response:
    status, reason = result.get("status_code"), result.get("reason")
    if not (isinstance(status, int) and 200 <= status <= 599):
        status = 403
    if reason is None:
        response = Response.refusal(status, "refused by policy")
    else:
        text = reason if isinstance(reason, str) else json.dumps(reason)
        kind = "text/plain" if isinstance(reason, str) else "application/json"
        response = Response.text(status, text, reason="refused by policy", content_type=kind)
    for name, value in headers.items():
        try:
            response.headers.set(name, value)
        except BadHeader:
            continue  # the decision stands, whatever it wants to be said beside it
    return response
