"""`proxy-rewrite`: change a request on its way to the upstream: path, host, method, headers."""

from typing import Annotated, Any, Self

from pydantic import BeforeValidator, Field, field_validator, model_validator

from headgate.common.patterns import compile_pattern
from headgate.gateway.plugins.headers import HeaderName, checked_value, configured_value
from headgate.gateway.plugins.interface import Plugin, PluginConfig, PluginServices, Request
from headgate.gateway.plugins.patterns import PatternText, Substitution, Template, sendable


def _as_text(value: object) -> object:
    return str(value) if isinstance(value, int | float) and not isinstance(value, bool) else value


def _check_template(text: str) -> str:
    configured_value(text)
    return text


HeaderTemplate = Annotated[str, BeforeValidator(_as_text), Field(max_length=8192)]
"""A value with `$` references; numbers are taken too."""


class HeaderChanges(PluginConfig):
    """Changes of headers; removal comes first, then `set`, then `add`. Values may have `$` references."""

    add: dict[HeaderName, HeaderTemplate] = Field(default_factory=dict)
    set: dict[HeaderName, HeaderTemplate] = Field(default_factory=dict)
    """An empty value removes the header."""
    remove: tuple[str, ...] = ()

    @field_validator("add", "set")
    @classmethod
    def _check_values(cls, values: dict[str, str]) -> dict[str, str]:
        return {name: _check_template(value) for name, value in values.items()}


class PrefixReplacement(PluginConfig):
    """A prefix of the path, of whole elements, and what stands there instead (Gateway API `ReplacePrefixMatch`)."""

    prefix: str = Field(pattern="^/")
    replacement: str


class ProxyRewriteConfig(PluginConfig):
    """Fields of `proxy-rewrite`. Of the changes to the path the first that is given and matches is made."""

    uri: str | None = Field(default=None, pattern="^/")
    """The new path, a template; the query stays, behind one that stands here."""
    regex_uri: tuple[str, ...] = ()
    """Pairs of a pattern and what its first match in the path is replaced by; the first that matches counts."""
    regex_ignore_case: bool = False
    replace_prefix: PrefixReplacement | None = None
    strip_prefixes: tuple[str, ...] = ()
    """The first that the path begins with is cut off (Traefik `stripPrefix`)."""
    strip_regex: tuple[PatternText, ...] = ()
    """The first that matches at the beginning of the path is cut off (Traefik `stripPrefixRegex`)."""
    add_prefix: str | None = Field(default=None, pattern="^/")
    """Put in front of the path, after any of the changes above."""
    forwarded_prefix: bool = False
    """Tell the upstream in `X-Forwarded-Prefix` what was cut off."""
    host: str | None = Field(default=None, pattern=r"^[A-Za-z0-9._~\[\]:-]+$")
    """Host that is sent, with a port if need be."""
    method: str | None = Field(default=None, pattern="^[A-Z]+$")
    headers: HeaderChanges = HeaderChanges()

    @field_validator("headers", mode="before")
    @classmethod
    def _read_flat(cls, value: Any) -> Any:
        """Read the older, flat form: names and values to set."""
        flat = isinstance(value, dict) and value and not set(value) & {"add", "set", "remove"}
        return {"set": value} if flat else value

    @field_validator("regex_uri")
    @classmethod
    def _check_pairs(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        if len(value) % 2:
            raise ValueError("needs pairs: a pattern and its replacement")
        for pattern in value[::2]:
            compile_pattern(pattern)
        return value

    @model_validator(mode="after")
    def _check(self) -> Self:
        if not self.model_fields_set:
            raise ValueError("has nothing to change: give uri, regex_uri, host, method or headers")
        return self


class ProxyRewrite(Plugin[ProxyRewriteConfig]):
    """Rewrites requests."""

    name = "proxy-rewrite"
    order = 1008
    Config = ProxyRewriteConfig

    def __init__(self, config: ProxyRewriteConfig, services: PluginServices) -> None:
        super().__init__(config, services)
        self._uri = Template(config.uri) if config.uri is not None else None
        pairs = zip(config.regex_uri[::2], config.regex_uri[1::2], strict=True)
        self._substitutions = [Substitution(*pair, ignore_case=config.regex_ignore_case) for pair in pairs]
        self._stripped = [compile_pattern(f"^(?:{pattern})") for pattern in config.strip_regex]
        headers = config.headers
        self._set = [(name, Template(value)) for name, value in headers.set.items()]
        self._added = [(name, Template(value)) for name, value in headers.add.items()]

    def on_request(self, request: Request) -> None:
        """Make the changes."""
        config = self.config
        caught = self._rewrite_path(request)
        if config.add_prefix is not None:
            request.path = config.add_prefix.rstrip("/") + request.path
        if config.host is not None:
            request.upstream_host = config.host
        if config.method is not None:
            request.method = config.method
        for name in config.headers.remove:
            request.headers.remove(name)
        for name, template in self._set:
            value = checked_value(template.render(request, caught))
            if value:
                request.headers.set(name, value)
            else:
                request.headers.remove(name)
        for name, template in self._added:
            request.headers.add(name, template.render(request, caught))

    def _rewrite_path(self, request: Request) -> tuple[str, ...]:
        """Change the path; return what a pattern's groups caught."""
        if self._uri is not None:
            _set_target(request, self._uri.render(request))
            return ()
        for substitution in self._substitutions:
            changed = substitution.apply(request.path, request)
            if changed is not None:
                _set_target(request, changed[0])
                return changed[1]
        cut = self._prefix_length(request.path)
        if cut is not None:
            if self.config.forwarded_prefix:
                request.headers.set("X-Forwarded-Prefix", request.path[:cut])
            replacement = self.config.replace_prefix.replacement if self.config.replace_prefix is not None else ""
            rest = request.path[cut:]
            request.path = f"{replacement.rstrip('/')}{rest}" if rest.startswith("/") else f"{replacement}{rest}"
            if not request.path.startswith("/"):
                request.path = f"/{request.path}"
        return ()

    def _prefix_length(self, path: str) -> int | None:
        """Return how much of the path is cut off at its beginning; None if no prefix is the path's."""
        config = self.config
        if config.replace_prefix is not None:
            prefix = config.replace_prefix.prefix.rstrip("/")
            matches = path == prefix or path.startswith(f"{prefix}/")
            return len(prefix) if matches else None
        for prefix in config.strip_prefixes:
            if path.startswith(prefix):
                return len(prefix)
        for pattern in self._stripped:
            found = pattern.search(path.encode("latin-1"))
            if found is not None:
                return found.end()
        return None


def _set_target(request: Request, target: str) -> None:
    """Take a new path, and a query with it that goes before the request's own."""
    path, _, query = sendable(target).partition("?")
    request.path = path if path.startswith("/") else f"/{path}"
    if query:
        request.query = f"{query}&{request.query}" if request.query else query
