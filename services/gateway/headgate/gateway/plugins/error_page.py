"""`error-page`: let a service write the pages of errors.

An answer with one of the listed statuses, the gateway's own too, is replaced by what the service answers. It is told of
the case as ingress-nginx's `custom-http-errors` tells its default backend: `X-Code`, `X-Format` (the client's Accept),
`X-Original-URI`, `X-Request-ID`, and what `headers` adds (`X-Namespace`, `X-Ingress-Name`, `X-Service-Name`,
`X-Service-Port`).
"""

from typing import Any

from pydantic import Field, field_validator

from headgate.gateway.plugins.calls import CalledConfig, CallFailed, call, call_url
from headgate.gateway.plugins.headers import HeaderName
from headgate.gateway.plugins.interface import Headers, Plugin, PluginServices, Request, Response
from headgate.gateway.plugins.patterns import Template, sendable
from headgate.gateway.plugins.proxy_rewrite import HeaderTemplate

_HEADERS_KEPT = ("WWW-Authenticate", "Retry-After", "Allow", "Set-Cookie", "X-Request-Id")


class ErrorPageConfig(CalledConfig):
    """Fields of `error-page`."""

    statuses: tuple[tuple[int, int], ...] = Field(min_length=1)
    """Statuses and ranges of them: `[404, "500-599"]`."""
    path: str = Field(default="/", pattern="^/")
    """Asked for; `{status}` and `{url}` (the request's, percent-encoded) are filled in. With `uri` too."""
    headers: dict[HeaderName, HeaderTemplate] = Field(default_factory=dict)
    """More that the service is told; values may have `$` references."""
    keep_status: bool = False
    """The client gets the status of the error; by default that of the service's answer."""
    timeout: float = Field(default=5, gt=0, le=600)
    """Seconds; without an answer in time the client gets the error as it was."""
    max_body: int = Field(default=1 << 20, gt=0)

    @field_validator("statuses", mode="before")
    @classmethod
    def _read_statuses(cls, value: Any) -> Any:
        return [_read_range(one) for one in value] if isinstance(value, list | tuple) else value


def _read_range(text: Any) -> Any:
    """Read `404` or `500-599`."""
    if isinstance(text, list | tuple):
        return text
    first, _, last = str(text).partition("-")
    if not first.isdecimal() or not (last or first).isdecimal() or not 300 <= int(first) <= int(last or first) <= 599:
        raise ValueError("a status is a number from 300 to 599, or a range as 500-599")
    return int(first), int(last or first)


class ErrorPage(Plugin[ErrorPageConfig]):
    """Replaces errors by a service's pages."""

    name = "error-page"
    order = 450
    Config = ErrorPageConfig

    def __init__(self, config: ErrorPageConfig, services: PluginServices) -> None:
        super().__init__(config, services)
        self._statuses = frozenset(code for first, last in config.statuses for code in range(first, last + 1))
        self._told = [(name, Template(value)) for name, value in config.headers.items()]

    def on_response(self, request: Request, response: Response) -> Any:
        """Ask for a page if the status is one of those."""
        return self._replace(request, response) if response.status in self._statuses else None

    async def _replace(self, request: Request, response: Response) -> None:
        config = self.config
        try:
            page = await self._ask(request, response.status)
        except CallFailed as error:
            self.services.logger.warning("error-page of %s: %s", request.route, error)
            return
        for name in _HEADERS_KEPT:
            for value in response.headers.get_all(name):
                page.headers.add(name, value)
        page.status = response.status if config.keep_status else page.status
        page.reason = response.reason
        page.from_upstream = response.from_upstream
        response.replace(page)

    async def _ask(self, request: Request, status: int) -> Response:
        config = self.config
        url = sendable(request.original_target).replace("?", "%3F").replace("&", "%26")
        path = config.path.replace("{status}", str(status)).replace("{url}", url)
        question = Request(
            method="HEAD" if request.method == "HEAD" else "GET",
            scheme=request.scheme,
            host=request.host,
            path=path.partition("?")[0],
            query=path.partition("?")[2],
            headers=self._headers(request, status),
            client=request.client,
            request_id=request.id,
            route=request.route,
            body=b"",
        )
        if config.uri is None:
            return await call(self.services, config, question, timeout_s=config.timeout, max_body=config.max_body)
        return await call_url(
            self.services,
            config.uri.rstrip("/") + question.target,
            question,
            timeout_s=config.timeout,
            max_body=config.max_body,
            verify=config.ssl_verify,
        )

    def _headers(self, request: Request, status: int) -> Headers:
        headers = Headers()
        for name in ("Accept", "Accept-Language", "User-Agent"):
            value = request.headers.get(name)
            if value is not None:
                headers.set(name, value)
        headers.set("X-Code", str(status))
        headers.set("X-Format", request.headers.get("Accept") or "")
        headers.set("X-Original-URI", request.original_target)
        headers.set("X-Request-ID", request.id)
        headers.set("X-Forwarded-Host", request.authority)
        for name, template in self._told:
            headers.set(name, template.render(request))
        return headers
