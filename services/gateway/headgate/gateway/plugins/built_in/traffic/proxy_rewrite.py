"""`proxy-rewrite`: change a request on its way to the upstream: path, host, method, headers."""

import re
from typing import ClassVar, Final, Literal
from urllib.parse import unquote

from headgate.common.patterns import compile_pattern
from headgate.common.plugins.traffic.proxy_rewrite import ProxyRewriteConfig, texts_of
from headgate.gateway.plugins.interface import Headers, Plugin, PluginConfig, PluginServices, Request, Response
from headgate.gateway.plugins.kit.patterns import SearchTime, Substitution, Template, sendable

_ENCODED: Final = re.compile("%[0-9A-Fa-f]{2}")
_EMPTIED: Final = "proxy-rewrite.emptied"
"""Among a request's variables: nothing is left of its path, so that a prefix which is added stands alone (Traefik)."""
_UNCLEAN: Final = re.compile(r"/\.{0,2}(?=/)|/\.{1,2}$")


class ProxyRewrite(Plugin[ProxyRewriteConfig]):
    """Rewrites requests."""

    name: ClassVar[str] = "proxy-rewrite"
    order: ClassVar[int] = 1008
    Config: ClassVar[type[PluginConfig]] = ProxyRewriteConfig
    preview: ClassVar[Literal["no", "yes", "with-client", "passes"]] = "yes"
    is_shareable: ClassVar[bool] = True

    def __init__(self, config: ProxyRewriteConfig, services: PluginServices) -> None:
        super().__init__(config, services)
        self._uri = Template(config.uri) if config.uri is not None else None
        self._host = Template(config.host) if config.host is not None else None
        pairs = zip(config.regex_uri[::2], config.regex_uri[1::2], strict=True)
        ignore_case, is_of_all = config.regex_ignore_case, config.replaces_all
        self._substitutions = [Substitution(*pair, ignore_case=ignore_case, is_of_all=is_of_all) for pair in pairs]
        self._prefixes = [prefix.encode().decode("latin-1") for prefix in config.strip_prefixes]
        self._stripped = [compile_pattern(f"^(?:{pattern})") for pattern in config.strip_regex]
        is_cut = bool(config.replace_prefix or self._prefixes or self._stripped)
        self._rewrites_path = self._uri is not None or bool(self._substitutions) or is_cut
        """A rule changes the path, apart from `add_prefix`."""
        # Read once: a field of a model takes as long as a call.
        self._replaced_path, self._method = config.replaced_path, config.method
        self._added_prefix = config.add_prefix or ""
        self._refuses_unclean = config.refuses_unclean
        headers = config.headers
        self._removed = tuple(headers.remove)
        self._set = [(name, [Template(text) for text in texts_of(value)]) for name, value in headers.set.items()]
        self._added = [(name, Template(text)) for name, value in headers.add.items() for text in texts_of(value)]

    def on_request(self, request: Request) -> Response | None:
        """Make the changes."""
        before = request.path
        caught = self._rewrite_path(request) if self._rewrites_path else ()
        if self._refuses_unclean and request.path != before and _UNCLEAN.search(request.path) is not None:
            return Response.refusal(400, "the changed path has empty or dot segments")
        if self._added_prefix:
            has_path = request.path != "/" or not request.variables.get(_EMPTIED)
            request.path = self._added_prefix + (request.path if has_path else "")
        if self._host is not None:
            request.upstream_host = self._host.render(request, caught)
        if self._method is not None:
            request.method = self._method
        for name in self._removed:
            request.headers.remove_named(name)
        for name, templates in self._set:
            _set_values(request.headers, name, [template.render(request, caught) for template in templates])
        for name, template in self._added:
            request.headers.add(name, template.render(request, caught))
        return None

    def _rewrite_path(self, request: Request) -> tuple[str, ...]:
        """Change the path; return what a pattern's groups caught."""
        if self._uri is not None:
            self._replace(request, self._uri.render(request))
            return ()
        time_left = SearchTime(request.path)
        for substitution in self._substitutions:
            time_left.check()
            changed = substitution.apply(request.path, request)
            if changed is not None:
                self._replace(request, changed[0])
                return changed[1]
        cut = self._prefix_length(request.path, time_left)
        if cut is not None:
            if self.config.forwarded_prefix:
                request.headers.add("X-Forwarded-Prefix", unquote(request.path[:cut], "latin-1"))
            replacement = self.config.replace_prefix.replacement if self.config.replace_prefix is not None else ""
            rest = request.path[cut:]
            request.path = f"{replacement.rstrip('/')}{rest}" if rest.startswith("/") else f"{replacement}{rest}"
            if not request.path:
                request.variables[_EMPTIED] = True
            if not request.path.startswith("/"):
                request.path = f"/{request.path}"
        return ()

    def _replace(self, request: Request, target: str) -> None:
        if self._replaced_path:
            request.headers.add("X-Replaced-Path", request.path)
        _set_target(request, target)

    def _prefix_length(self, path: str, time_left: SearchTime) -> int | None:
        """Return how much of the path is cut off at its beginning; None if no prefix is the path's."""
        config = self.config
        if config.replace_prefix is not None:
            prefix = config.replace_prefix.prefix.rstrip("/")
            matches = path == prefix or path.startswith(f"{prefix}/")
            return len(prefix) if matches else None
        if not (self._prefixes or self._stripped):
            return None
        text = unquote(path, "latin-1")
        for prefix in self._prefixes:
            if text.startswith(prefix):
                return _encoded_length(path, len(prefix))
        for pattern in self._stripped:
            time_left.check()
            found = pattern.search(text.encode("latin-1"))
            if found is not None:
                return _encoded_length(path, found.end())
        return None


def _set_values(headers: Headers, name: str, values: list[str]) -> None:
    """Put fields with these values in the place of all that have a name; of empty values there are none."""
    is_set = False
    for value in values:
        if not value.strip(" \t"):
            continue
        if is_set:
            headers.add(name, value)
        else:
            headers.set(name, value)
            is_set = True
    if not is_set:
        headers.remove(name)


def _encoded_length(path: str, decoded: int) -> int:
    """Return how much of a path stands for so many decoded characters at its beginning."""
    place = 0
    for _ in range(decoded):
        place += 3 if path[place] == "%" and _ENCODED.match(path, place) else 1
    return place


def _set_target(request: Request, target: str) -> None:
    """Take a new path, and a query with it that goes before the request's own."""
    path, _, query = sendable(target).partition("?")
    request.path = path if path.startswith("/") else f"/{path}"
    if query:
        request.query = f"{query}&{request.query}" if request.query else query
