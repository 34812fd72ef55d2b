"""`proxy-redirect`: rewrite the addresses that an upstream gives to clients: of redirects, and of cookies.

As nginx's `proxy_redirect`, `proxy_cookie_domain` and `proxy_cookie_path`
(https://nginx.org/en/docs/http/ngx_http_proxy_module.html).
"""

from collections.abc import Iterable

from headgate.common.patterns import compile_pattern
from headgate.common.plugins.transformation.proxy_redirect import AddressRule, ProxyRedirectConfig
from headgate.gateway.plugins.interface import Plugin, PluginServices, Request, Response
from headgate.gateway.plugins.kit.patterns import Template, texts_caught

_URL = "url="


class _Rule:
    """A text or a pattern, and what replaces it."""

    def __init__(self, rule: AddressRule, *, is_whole: bool) -> None:
        self._replacement = Template(rule.replacement)
        self._regex = None
        if rule.is_regex:
            self._regex = compile_pattern(rule.pattern, ignore_case=rule.ignore_case, captures=True)
        self._text = Template(rule.pattern)
        self._is_whole = is_whole

    def apply(self, address: str, request: Request) -> str | None:
        """Return the new address; None if the rule does not fit."""
        if self._regex is not None:
            found = self._regex.search(address.encode("latin-1"))
            return None if found is None else self._replacement.render(request, texts_caught(found))
        text = self._text.render(request)
        if self._is_whole:
            domain = address.removeprefix(".")
            fits = bool(domain) and domain.lower() == text.removeprefix(".").lower()
            return address[: -len(domain)] + self._replacement.render(request).removeprefix(".") if fits else None
        return self._replacement.render(request) + address[len(text) :] if address.startswith(text) else None


class ProxyRedirect(Plugin[ProxyRedirectConfig]):
    """Rewrites `Location`, `Refresh` and `Set-Cookie` of upstreams."""

    name = "proxy-redirect"
    order = 440
    Config = ProxyRedirectConfig
    is_shareable = True

    def __init__(self, config: ProxyRedirectConfig, services: PluginServices) -> None:
        super().__init__(config, services)
        self._location = _rules(config.location)
        self._attributes = {"domain": _rules(config.cookie_domain, is_whole=True), "path": _rules(config.cookie_path)}

    def on_response(self, request: Request, response: Response) -> None:
        """Rewrite the addresses in an answer of an upstream."""
        if response.from_upstream:
            self._rewrite_location(request, response)
            self._rewrite_refresh(request, response)
            self._rewrite_cookies(request, response)

    def _rewrite_location(self, request: Request, response: Response) -> None:
        location = response.headers.get("Location")
        rewritten = None if location is None else _rewritten(self._location, location, request)
        if rewritten is not None:
            is_path = self.config.absolute and rewritten.startswith("/")
            whole = f"{request.scheme}://{request.host}{rewritten}" if is_path else rewritten
            response.headers.set("Location", whole)

    def _rewrite_refresh(self, request: Request, response: Response) -> None:
        refresh = response.headers.get("Refresh") or ""
        start = refresh.lower().find(_URL) + len(_URL)
        rewritten = _rewritten(self._location, refresh[start:], request) if start >= len(_URL) else None
        if rewritten is not None:
            response.headers.set("Refresh", refresh[:start] + rewritten)

    def _rewrite_cookies(self, request: Request, response: Response) -> None:
        cookies = response.headers.get_all("Set-Cookie")
        rewritten = [self._rewrite_cookie(cookie, request) for cookie in cookies]
        if rewritten != cookies:
            response.headers.remove("Set-Cookie")
            for cookie in rewritten:
                response.headers.add("Set-Cookie", cookie)

    def _rewrite_cookie(self, cookie: str, request: Request) -> str:
        pair, *attributes = [part.strip(" \t") for part in cookie.split(";")]
        rewritten = [self._rewrite_attribute(attribute, request) for attribute in attributes]
        return cookie if rewritten == attributes else "; ".join((pair, *rewritten))

    def _rewrite_attribute(self, attribute: str, request: Request) -> str:
        name, equals, value = attribute.partition("=")
        rules = self._attributes.get(name.strip(" \t").lower(), ())
        rewritten = _rewritten(rules, value.strip(" \t"), request) if equals else None
        return attribute if rewritten is None else f"{name}={rewritten}"


def _rules(rules: Iterable[AddressRule], *, is_whole: bool = False) -> tuple[_Rule, ...]:
    return tuple(_Rule(rule, is_whole=is_whole) for rule in rules)


def _rewritten(rules: Iterable[_Rule], address: str, request: Request) -> str | None:
    """Return an address by the first rule that fits; None if none does."""
    return next((new for rule in rules if (new := rule.apply(address, request)) is not None), None)
