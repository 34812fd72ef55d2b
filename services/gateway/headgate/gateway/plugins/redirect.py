"""`redirect`: send the client elsewhere."""

from typing import Self

from pydantic import Field, model_validator

from headgate.gateway.plugins.interface import Headers, Plugin, PluginConfig, PluginServices, Request, Response
from headgate.gateway.plugins.patterns import PatternText, Substitution, Template, sendable

_SAFE_METHODS = ("GET", "HEAD")


class RedirectConfig(PluginConfig):
    """Fields of `redirect`: exactly one of the first three."""

    http_to_https: bool = False
    """Redirect requests over plain HTTP to HTTPS: 301 for GET and HEAD, 308 for others, unless `ret_code` is given."""
    uri: str | None = Field(default=None, min_length=1)
    """Where to: a template, as `https://$host/new$uri`."""
    regex_uri: tuple[PatternText, str] | None = None
    """A pattern, and what its first match in the path is replaced by; requests that it does not match go on."""
    match_url: bool = False
    """`regex_uri` looks at the whole URL, `http://host/path?query`."""
    ret_code: int | None = Field(default=None, ge=200, le=599)
    """302 by default."""
    encode_uri: bool = False
    """Percent-encode the path again, `%` included."""
    append_query_string: bool = False
    """Add the request's query to `uri` or `regex_uri`."""
    https_port: int = Field(default=443, ge=1, le=65535)

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.http_to_https + (self.uri is not None) + (self.regex_uri is not None) != 1:
            raise ValueError("needs exactly one of http_to_https, uri and regex_uri")
        if self.http_to_https and self.append_query_string:
            raise ValueError("http_to_https keeps the query by itself: leave append_query_string out")
        return self


class Redirect(Plugin[RedirectConfig]):
    """Answers with a Location."""

    name = "redirect"
    order = 900
    Config = RedirectConfig

    def __init__(self, config: RedirectConfig, services: PluginServices) -> None:
        super().__init__(config, services)
        self._uri = Template(config.uri) if config.uri is not None else None
        self._substitution = Substitution(*config.regex_uri) if config.regex_uri is not None else None

    def on_request(self, request: Request) -> Response | None:
        """Redirect the request if it is one of those."""
        config = self.config
        status = config.ret_code or 302
        if config.http_to_https:
            if request.scheme == "https":
                return None
            if not request.host:
                return Response.refusal(400, "without a Host it is unknown where to redirect to")
            port = "" if config.https_port == 443 else f":{config.https_port}"
            status = config.ret_code or (301 if request.method in _SAFE_METHODS else 308)
            return _redirection(status, f"https://{request.host}{port}{request.original_target}")
        location = self._location(request)
        if location is None:
            return None
        if config.append_query_string and request.query:
            location += f"{'&' if '?' in location else '?'}{request.query}"
        return _redirection(status, location)

    def _location(self, request: Request) -> str | None:
        config = self.config
        if self._uri is not None:
            location = self._uri.render(request)
        else:
            assert self._substitution is not None
            text = f"{request.scheme}://{request.authority}{request.target}" if config.match_url else request.path
            changed = self._substitution.apply(text, request)
            if changed is None or (config.match_url and changed[0] == text):
                return None
            location = changed[0]
        return location.replace("%", "%25") if config.encode_uri else location


def _redirection(status: int, location: str) -> Response:
    headers = Headers([("Location", sendable(location))])
    return Response(status, headers, b"", reason="redirected")
