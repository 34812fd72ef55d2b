"""`forward-auth`: ask a service whether a request may pass.

The service is asked without the request's body, and told of it in `X-Forwarded-Method`, `-Proto`, `-Host`, `-Uri` and
`-For` (Apache APISIX, Traefik). Below 300 the request passes; anything else is the client's answer. With
`strict_statuses` only 2xx passes, 401 and 403 are handed on, and all else is a 500, as nginx's `auth_request` has it;
`signin` turns a 401 into a redirect (ingress-nginx `auth-signin`), and `cache` keeps answers for a while.
"""

import contextlib
from collections.abc import Awaitable, Collection, Iterator
from urllib.parse import urljoin

from headgate.common.patterns import compile_pattern
from headgate.common.plugins.authentication.forward_auth import ForwardAuthConfig
from headgate.common.plugins.fields import check_url, is_reserved
from headgate.gateway.plugins.built_in.authentication.verdicts import Verdicts
from headgate.gateway.plugins.interface import (
    BodyTooLarge,
    BuffersFull,
    Headers,
    Plugin,
    PluginServices,
    Request,
    Response,
)
from headgate.gateway.plugins.kit.calls import AnswerTooLong, CallFailed, call, call_url
from headgate.gateway.plugins.kit.patterns import Template, sendable

_OF_THE_ANSWER = frozenset(("date", "server", "set-cookie"))
"""Headers that say something of the service's answer alone."""
_COOKIES = "forward-auth.cookies"
_COOKIE_STATUSES = frozenset({200, 201, 204, 206, 301, 302, 303, 304, 307, 308})
"""Answers to which nginx's `add_header` adds."""


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
        try:
            question = await self._question(request)
            verdict = await self._call(request, question)
        except BodyTooLarge as error:
            if not config.status_on_long_body or isinstance(error, BuffersFull):
                raise
            return Response.refusal(config.status_on_long_body, str(error))
        except AnswerTooLong as error:
            if config.status_on_long_body:
                return Response.refusal(config.status_on_long_body, str(error))
            return self._go_without(request, error)
        except CallFailed as error:
            return self._go_without(request, error)
        if self._verdicts is not None:
            self._verdicts.keep(request, verdict)
        return self._judge(request, verdict)

    def _go_without(self, request: Request, error: CallFailed) -> Response | None:
        config = self.config
        self.services.logger.warning("forward-auth of %s: %s", request.route, error)
        if config.allow_degradation:
            self.drop_unverified(request)
            return None
        return Response.refusal(config.status_on_error, "the authentication service did not answer")

    def drop_unverified(self, request: Request) -> None:
        """Take out of a request that comes in otherwise what only the service may tell the upstream."""
        self._pass(request, Response(200))

    def _judge(self, request: Request, verdict: Response) -> Response | None:
        """Go on, or answer the client."""
        for variable, header in self.config.answer_variables.items():
            request.variables[variable] = verdict.headers.get(header) or ""
        if verdict.status >= 300 or verdict.status < 200 or (self.config.only_200 and verdict.status != 200):
            return self._refuse(request, verdict)
        self._pass(request, verdict)
        return None

    def on_response(self, request: Request, response: Response) -> None:
        """Hand the service's cookies to the client; sent to sign in is also whom another plugin refuses with 401."""
        if (
            self._signin is not None
            and self.config.signs_in_others
            and response.status == 401
            and not response.from_upstream
        ):
            location = Headers([("Location", sendable(self._signin.render(request)))])
            response.replace(Response(302, location, b"", reason=response.reason))
        cookies = request.variables.get(_COOKIES)
        if not isinstance(cookies, list):
            return
        names = self.config.cookie_names
        if names is not None:
            _drop_cookies(response.headers, names)
        if self.config.always_set_cookie or response.status in _COOKIE_STATUSES:
            for cookie in cookies:
                response.headers.add("Set-Cookie", cookie)

    async def _call(self, request: Request, question: Request) -> Response:
        config, timeout_s, longest = self.config, self.config.timeout / 1000, self.config.max_answer_size
        if self._uri is None:
            return await call(self.services, config, question, timeout_s=timeout_s, max_body=longest)
        url = sendable(self._uri.render(request))
        try:
            check_url(url)
        except ValueError:
            raise CallFailed("its uri is no URL with what this request has for its references") from None
        verify = config.ssl_verify
        return await call_url(self.services, url, question, timeout_s=timeout_s, max_body=longest, verify=verify)

    async def _question(self, request: Request) -> Request:
        config = self.config
        headers = Headers()
        for name, value in request.headers:
            lower = name.lower()
            shown = config.all_headers or any(lower == wanted.lower() for wanted in config.request_headers)
            if shown and not lower.startswith("x-forwarded-"):
                headers.add(name, value)
        if config.forwarded_headers:
            for name, value in self._told(request):
                headers.set(name, value)
        for name, template in self._extra:
            value = template.render(request)
            if value:
                headers.set(name, value)
            else:
                headers.remove(name)
        has_body = config.request_method == "POST" if config.request_body is None else config.request_body
        has_body = has_body and request.content_length != 0
        body = await request.read_body(config.max_req_body_size) if has_body else b""
        return Request(
            method=request.method if config.keeps_method else config.request_method,
            scheme=request.scheme,
            host=request.host,
            path=f"{config.path.rstrip('/')}{request.path}" if config.keeps_path else config.path,
            query=request.query if config.keeps_path else "",
            headers=headers,
            client=request.client,
            request_id=request.id,
            route=request.route,
            content_length=len(body),
            body=body,
        )

    def _told(self, request: Request) -> Iterator[tuple[str, str]]:
        """Yield what the service hears of the request in `X-Forwarded-*`."""
        is_rewritten = self.config.tells_rewritten
        is_believed = self.config.trusts_forwarded and bool(request.fact("claims_are_believed"))
        scheme = request.connection_scheme if is_rewritten and not is_believed else request.scheme
        told = {
            "X-Forwarded-Proto": scheme,
            "X-Forwarded-Method": request.method,
            "X-Forwarded-Host": request.authority,
            "X-Forwarded-Uri": request.target if is_rewritten else request.original_target,
            "X-Forwarded-For": request.client,
        }
        if is_rewritten:
            port = request.authority.rpartition("]")[2].partition(":")[2]
            told["X-Forwarded-Port"] = port or ("443" if scheme == "https" else "80")
        if is_believed:
            claimed = {name: request.claims.get(name.lower().encode(), b"").decode("latin-1") for name in told}
            told |= {name: value for name, value in claimed.items() if value}
            if claimed["X-Forwarded-For"]:
                told["X-Forwarded-For"] += f", {request.fact('peer_addr')}"
        yield from told.items()

    def _pass(self, request: Request, verdict: Response) -> None:
        for name in self.config.upstream_headers:
            _copy(verdict.headers, request.headers, name)
        if self._passed is not None:
            both = (*request.headers, *verdict.headers)
            names = {name for name, _ in both if self._passed.search(name.encode("latin-1"))}
            for name in sorted(names):
                _copy(verdict.headers, request.headers, name)
        if self.config.all_upstream_headers:
            for name in {name.lower() for name, _ in verdict.headers}:
                if name not in _OF_THE_ANSWER and not name.startswith("content-"):
                    _copy(verdict.headers, request.headers, name)
        if self.config.response_cookies:
            wanted, cookies = self.config.cookie_names, verdict.headers.get_all("Set-Cookie")
            if wanted is None:
                request.variables[_COOKIES] = cookies
            elif cookies:
                request.variables[_COOKIES] = [cookie for cookie in cookies if _name_of(cookie) in wanted]

    def _refuse(self, request: Request, verdict: Response) -> Response:
        config = self.config
        reason = f"the authentication service answered {verdict.status}"
        if verdict.status == 401 and self._signin is not None:
            location = Headers([("Location", sendable(self._signin.render(request)))])
            refusal = Response(302, location, b"", reason=reason)
            if config.cookie_names is None:
                _copy(verdict.headers, refusal.headers, "Set-Cookie")
            return refusal
        if config.strict_statuses and verdict.status not in (401, 403):
            return Response.refusal(500, reason)
        if verdict.status < 300:
            return Response.refusal(config.status_on_error, reason)
        if config.strict_statuses:
            refusal = Response.refusal(verdict.status, reason)
            copied = ("WWW-Authenticate", *config.client_headers)
        else:
            refusal = Response(verdict.status, body=verdict.body, reason=reason)
            copied = ("Content-Type", "Content-Encoding", "WWW-Authenticate", "Location", *config.client_headers)
        for name in dict(verdict.headers) if config.all_client_headers else copied:
            _copy(verdict.headers, refusal.headers, name)
        self._resolve_location(request, refusal.headers)
        return refusal

    def _resolve_location(self, request: Request, headers: Headers) -> None:
        location = headers.get("Location")
        if not (self.config.resolves_location and location):
            return
        base = self._uri.render(request) if self._uri is not None else self.config.address
        with contextlib.suppress(ValueError):
            headers.set("Location", sendable(urljoin(base, location)))


def _name_of(cookie: str) -> str:
    return cookie.partition("=")[0].strip()


def _drop_cookies(headers: Headers, names: Collection[str]) -> None:
    """Take cookies of these names out of an answer."""
    cookies = headers.get_all("Set-Cookie")
    if any(_name_of(cookie) in names for cookie in cookies):
        headers.remove("Set-Cookie")
        for cookie in cookies:
            if _name_of(cookie) not in names:
                headers.add("Set-Cookie", cookie)


def _copy(source: Headers, target: Headers, name: str) -> None:
    """Put a header's values in the place of the target's; none where the source has none."""
    if is_reserved(name):
        return
    target.remove(name)
    for value in source.get_all(name):
        target.add(name, value)
