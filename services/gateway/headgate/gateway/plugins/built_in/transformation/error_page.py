"""`error-page`: let a service write the pages of errors.

An answer with one of the listed statuses, the gateway's own too, is replaced by what the service answers. It hears of
the case as ingress-nginx's `custom-http-errors` tells its default backend: `X-Code`, `X-Format` (the client's Accept),
`X-Original-URI`, `X-Request-ID`, and what `headers` adds (`X-Namespace`, `X-Ingress-Name`, `X-Service-Name`,
`X-Service-Port`).
"""

from typing import Any
from urllib.parse import quote_plus

from headgate.common.plugins.transformation.error_page import ErrorPageConfig
from headgate.gateway.plugins.interface import Headers, Plugin, PluginServices, Request, Response
from headgate.gateway.plugins.kit.calls import CallFailed, call_upstream, call_url
from headgate.gateway.plugins.kit.patterns import Template, sendable


class ErrorPage(Plugin[ErrorPageConfig]):
    """Replaces errors by a service's pages."""

    name = "error-page"
    order = 450
    Config = ErrorPageConfig

    def __init__(self, config: ErrorPageConfig, services: PluginServices) -> None:
        super().__init__(config, services)
        self._statuses = frozenset(code for first, last in config.statuses for code in range(first, last + 1))
        self._target = services.find_group(config.group) if config.group is not None else config.upstream
        self._told = [(name, Template(value)) for name, value in config.headers.items()]

    def on_response(self, request: Request, response: Response) -> Any:
        """Ask for a page if the status is one of those."""
        if response.status not in self._statuses or (self.config.own_only and response.from_upstream):
            return None
        if self.config.page is None:
            return self._replace(request, response)
        page = Response(self.config.page.status, body=self.config.page.body.encode(), reason=response.reason)
        page.headers.set("Content-Type", self.config.page.content_type)
        self._put(page, response)
        return None

    async def _replace(self, request: Request, response: Response) -> None:
        config = self.config
        status = self._rewritten(response.status)
        try:
            page = await self._ask(request, status, response.status)
        except CallFailed as error:
            self.services.logger.warning("error-page of %s: %s", request.route, error)
            return
        page.status = status if config.keep_status else page.status
        self._put(page, response)

    def _rewritten(self, status: int) -> int:
        return next((to for first, last, to in self.config.rewrites if first <= status <= last), status)

    def _put(self, page: Response, response: Response) -> None:
        """Put a page in the place of an error."""
        for name in self.config.kept_headers:
            for value in response.headers.get_all(name):
                page.headers.add(name, value)
        page.reason = response.reason
        page.from_upstream = response.from_upstream
        response.replace(page)

    def _path(self, request: Request, status: int, original: int) -> str:
        if self.config.whole_url:
            url = quote_plus(f"{request.scheme}://{request.authority}{request.target}", encoding="latin-1")
        else:
            url = sendable(request.original_target).replace("?", "%3F").replace("&", "%26")
        path = self.config.path.replace("{status}", str(status)).replace("{originalStatus}", str(original))
        return path.replace("{url}", url)

    async def _ask(self, request: Request, status: int, original: int) -> Response:
        config = self.config
        path = self._path(request, status, original)
        if config.forward_request and request.original_query:
            path += f"{'&' if '?' in path else '?'}{request.original_query}"
        question = Request(
            method=request.method if config.forward_request else "GET",
            scheme=request.scheme,
            host=request.host,
            authority=request.authority,
            path=path.partition("?")[0],
            query=path.partition("?")[2],
            headers=self._headers(request, status),
            client=request.client,
            request_id=request.id,
            route=request.route,
            body=b"",
        )
        if config.uri is None:
            assert self._target is not None
            return await call_upstream(
                self.services, self._target, question, timeout_s=config.timeout, max_body=config.max_body
            )
        return await call_url(
            self.services,
            config.uri.rstrip("/") + question.target,
            question,
            timeout_s=config.timeout,
            max_body=config.max_body,
            verify=config.ssl_verify,
        )

    def _headers(self, request: Request, status: int) -> Headers:
        config = self.config
        shown = config.request_headers
        headers = request.headers.copy() if config.forward_request or shown is None else Headers()
        for name in shown or ():
            value = request.headers.get(name)
            if value is not None:
                headers.set(name, value)
        if config.tells_case:
            headers.set("X-Code", str(status))
            headers.set("X-Format", request.headers.get("Accept") or "")
            headers.set("X-Original-URI", request.original_target)
            headers.set("X-Request-ID", request.id)
            headers.set("X-Forwarded-Host", request.authority)
        for name, template in self._told:
            headers.set(name, template.render(request))
        return headers
