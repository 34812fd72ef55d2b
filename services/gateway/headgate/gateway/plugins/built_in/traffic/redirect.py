"""`redirect`: send the client elsewhere."""

import re

from headgate.common.plugins.traffic.redirect import RedirectConfig
from headgate.gateway.plugins.interface import Headers, Plugin, PluginServices, Request, Response
from headgate.gateway.plugins.kit.patterns import Substitution, Template, sendable
from headgate.gateway.proxy.heads.authority import normal_host

_SAFE_METHODS = ("GET", "HEAD")
_KEEPING = {301: 308, 302: 307}
_DEFAULT_PORTS = {"http": ":80", "https": ":443"}
_NO_HOST = re.compile(r"[^/?#]*//[^/?#[]*%[0-7]")
"""Begins a URL whose host has an escape of a character that hosts have as it is, or cannot have."""


class Redirect(Plugin[RedirectConfig]):
    """Answers with a Location."""

    name = "redirect"
    order = 900
    Config = RedirectConfig
    preview = "yes"
    is_shareable = True

    def __init__(self, config: RedirectConfig, services: PluginServices) -> None:
        super().__init__(config, services)
        self._uri = Template(config.uri) if config.uri is not None else None
        pair = config.regex_uri
        self._substitution = Substitution(*pair, is_of_all=config.replaces_all) if pair is not None else None
        target = config.uri or (config.regex_uri or ("", ""))[1]
        self._names_host = target.startswith("//")
        """The author wrote a scheme-relative URL, as `//cdn.example$uri`."""

    def on_request(self, request: Request) -> Response | None:
        """Redirect the request if it is one of those."""
        config = self.config
        status = config.ret_code or 302
        if config.http_to_https:
            if request.scheme == "https":
                return None
            host = _bare_host(request.forwarded_host) or request.host
            if not host:
                return Response.refusal(400, "without a Host it is unknown where to redirect to")
            port = "" if config.https_port == 443 and not config.names_port else f":{config.https_port}"
            status = config.ret_code or (301 if request.method in _SAFE_METHODS else 308)
            if config.keep_method and request.method != "GET":
                status = _KEEPING.get(status, status)
            target = request.original_target
            target = target.removesuffix("/") if config.strip_trailing_slash else target
            return _redirection(status, f"https://{host}{port}{target}")
        location = self._location(request)
        if location is None:
            return None
        if config.match_url and _NO_HOST.match(location):
            return Response.refusal(502, "the URL to redirect to has no host that could be asked")
        if config.keep_method and request.method != "GET":
            status = _KEEPING.get(status, status)
        if config.append_query_string and request.query:
            location += f"{'&' if '?' in location else '?'}{request.query}"
        return _redirection(status, location)

    def _location(self, request: Request) -> str | None:
        config = self.config
        if self._uri is not None:
            location = self._uri.render(request)
        else:
            assert self._substitution is not None
            text = self._url(request) if config.match_url else request.path
            changed = self._substitution.apply(text, request)
            if changed is None or (config.match_url and changed[0] == text):
                return None
            location = changed[0]
        location = location.replace("%", "%25") if config.encode_uri else location
        return location if self._names_host else _on_this_host(location)

    def _url(self, request: Request) -> str:
        """Return the URL that was asked for."""
        if self.config.of_connection:
            return f"{request.connection_scheme}://{request.authority}{request.target}"
        authority = request.authority.removesuffix(_DEFAULT_PORTS[request.scheme])
        return f"{request.scheme}://{authority}{request.target}"


def _bare_host(authority: str) -> str:
    """Take the port off a host, which was checked."""
    return normal_host(authority.encode("latin-1")).decode("latin-1") if authority else ""


_SLASHES = re.compile(r"[/\\]{2,}")


def _on_this_host(location: str) -> str:
    r"""Merge the slashes at the beginning: browsers take `//evil.example` and `/\evil.example` for another host."""
    found = _SLASHES.match(location)
    return f"/{location[found.end() :]}" if found is not None else location


def _redirection(status: int, location: str) -> Response:
    url, mark, fragment = location.partition("#")
    headers = Headers([("Location", sendable(url) + mark + sendable(fragment))])
    return Response(status, headers, b"", reason="redirected")
