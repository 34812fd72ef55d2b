"""`forward-auth`: ask a service whether a request may pass.

The service is asked without the request's body, and told of it in `X-Forwarded-Method`, `-Proto`, `-Host`, `-Uri` and
`-For` (Apache APISIX, Traefik). Below 300 the request passes; anything else is the client's answer. With
`strict_statuses` only 2xx passes, 401 and 403 are handed on, and all else is a 500, as nginx's `auth_request` has it;
`signin` turns a 401 into a redirect (ingress-nginx `auth-signin`), and `cache` keeps answers for a while.
"""

from collections.abc import Awaitable

from headgate.common.patterns import compile_pattern
from headgate.common.plugins.authentication.forward_auth import ForwardAuthConfig
from headgate.common.plugins.fields import check_url, is_reserved
from headgate.gateway.plugins.built_in.authentication.verdicts import Verdicts
from headgate.gateway.plugins.interface import Headers, Plugin, PluginServices, Request, Response
from headgate.gateway.plugins.kit.calls import CallFailed, call, call_url
from headgate.gateway.plugins.kit.patterns import Template, sendable

_COOKIES = "forward-auth.cookies"
_COOKIE_STATUSES = frozenset({200, 201, 204, 206, 301, 302, 303, 304, 307, 308})
"""Answers to which nginx's `add_header` adds."""
_MAX_ANSWER = 1 << 20


class ForwardAuth(Plugin[ForwardAuthConfig]):
    """Asks a service."""

    name = "forward-auth"
    order = 2002
    unforeseen = "asks another service"
    Config = ForwardAuthConfig
    is_shareable = True

    def __init__(self, config: ForwardAuthConfig, services: PluginServices) -> None:
        super().__init__(config, services)
        self._signin = Template(config.signin) if config.signin is not None else None
        self._extra = [(name, Template(value)) for name, value in config.extra_headers.items()]
        self._uri = Template(config.uri) if config.uri is not None else None
        self._verdicts = None if config.cache is None else Verdicts(config, config.cache, services)
        pattern = config.upstream_headers_regex
        self._passed = compile_pattern(pattern, ignore_case=True) if pattern is not None else None

    def on_request(self, request: Request) -> Response | Awaitable[Response | None] | None:
        """Go by an answer that is kept, or ask."""
        kept = None if self._verdicts is None else self._verdicts.find(request)
        return self._ask(request) if kept is None else self._judge(request, kept)

    async def _ask(self, request: Request) -> Response | None:
        config = self.config
        question = await self._question(request)
        try:
            verdict = await self._call(request, question)
        except CallFailed as error:
            self.services.logger.warning("forward-auth of %s: %s", request.route, error)
            if config.allow_degradation:
                self.drop_unverified(request)
                return None
            return Response.refusal(config.status_on_error, "the authentication service did not answer")
        if self._verdicts is not None:
            self._verdicts.keep(request, verdict)
        return self._judge(request, verdict)

    def drop_unverified(self, request: Request) -> None:
        """Take out of a request that comes in otherwise what only the service may tell the upstream."""
        self._pass(request, Response(200))

    def _judge(self, request: Request, verdict: Response) -> Response | None:
        """Go on, or answer the client."""
        for variable, header in self.config.answer_variables.items():
            request.variables[variable] = verdict.headers.get(header) or ""
        if verdict.status >= 300 or verdict.status < 200:
            return self._refuse(request, verdict)
        self._pass(request, verdict)
        return None

    def on_response(self, request: Request, response: Response) -> None:
        """Hand the service's cookies to the client; sent to sign in is also whom another plugin refuses with 401."""
        if self._signin is not None and response.status == 401 and not response.from_upstream:
            location = Headers([("Location", sendable(self._signin.render(request)))])
            response.replace(Response(302, location, b"", reason=response.reason))
        cookies = request.variables.get(_COOKIES)
        if isinstance(cookies, list) and (self.config.always_set_cookie or response.status in _COOKIE_STATUSES):
            for cookie in cookies:
                response.headers.add("Set-Cookie", cookie)

    async def _call(self, request: Request, question: Request) -> Response:
        config, timeout_s = self.config, self.config.timeout / 1000
        if self._uri is None:
            return await call(self.services, config, question, timeout_s=timeout_s, max_body=_MAX_ANSWER)
        url = sendable(self._uri.render(request))
        try:
            check_url(url)
        except ValueError:
            raise CallFailed("its uri is no URL with what this request has for its references") from None
        verify = config.ssl_verify
        return await call_url(self.services, url, question, timeout_s=timeout_s, max_body=_MAX_ANSWER, verify=verify)

    async def _question(self, request: Request) -> Request:
        config = self.config
        headers = Headers()
        for name, value in request.headers:
            lower = name.lower()
            shown = config.all_headers or any(lower == wanted.lower() for wanted in config.request_headers)
            if shown and not lower.startswith("x-forwarded-"):
                headers.add(name, value)
        if config.forwarded_headers:
            headers.set("X-Forwarded-Proto", request.scheme)
            headers.set("X-Forwarded-Method", request.method)
            headers.set("X-Forwarded-Host", request.authority)
            headers.set("X-Forwarded-Uri", request.original_target)
            headers.set("X-Forwarded-For", request.client)
        for name, template in self._extra:
            value = template.render(request)
            if value:
                headers.set(name, value)
            else:
                headers.remove(name)
        has_body = config.request_method == "POST" if config.request_body is None else config.request_body
        body = await request.read_body(config.max_req_body_size) if has_body else b""
        return Request(
            method=config.request_method,
            scheme=request.scheme,
            host=request.host,
            path=config.path,
            headers=headers,
            client=request.client,
            request_id=request.id,
            route=request.route,
            content_length=len(body),
            body=body,
        )

    def _pass(self, request: Request, verdict: Response) -> None:
        for name in self.config.upstream_headers:
            _copy(verdict.headers, request.headers, name)
        if self._passed is not None:
            both = (*request.headers, *verdict.headers)
            names = {name for name, _ in both if self._passed.search(name.encode("latin-1"))}
            for name in sorted(names):
                _copy(verdict.headers, request.headers, name)
        if self.config.response_cookies:
            request.variables[_COOKIES] = verdict.headers.get_all("Set-Cookie")

    def _refuse(self, request: Request, verdict: Response) -> Response:
        config = self.config
        reason = f"the authentication service answered {verdict.status}"
        if verdict.status == 401 and self._signin is not None:
            location = Headers([("Location", sendable(self._signin.render(request)))])
            refusal = Response(302, location, b"", reason=reason)
            _copy(verdict.headers, refusal.headers, "Set-Cookie")
            return refusal
        if config.strict_statuses and verdict.status not in (401, 403):
            return Response.refusal(500, reason)
        if verdict.status < 200:
            return Response.refusal(config.status_on_error, reason)
        if config.strict_statuses:
            refusal = Response.refusal(verdict.status, reason)
            copied = ("WWW-Authenticate", *config.client_headers)
        else:
            refusal = Response(verdict.status, body=verdict.body, reason=reason)
            copied = ("Content-Type", "Content-Encoding", "WWW-Authenticate", "Location", *config.client_headers)
        for name in copied:
            _copy(verdict.headers, refusal.headers, name)
        return refusal


def _copy(source: Headers, target: Headers, name: str) -> None:
    """Put a header's values in the place of the target's; none where the source has none."""
    if is_reserved(name):
        return
    target.remove(name)
    for value in source.get_all(name):
        target.add(name, value)
