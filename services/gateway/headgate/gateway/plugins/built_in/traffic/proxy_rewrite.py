"""`proxy-rewrite`: change a request on its way to the upstream: path, host, method, headers."""

from headgate.common.patterns import compile_pattern
from headgate.common.plugins.fields import checked_value
from headgate.common.plugins.traffic.proxy_rewrite import ProxyRewriteConfig, texts_of
from headgate.gateway.plugins.interface import Plugin, PluginServices, Request
from headgate.gateway.plugins.kit.patterns import SearchTime, Substitution, Template, sendable


class ProxyRewrite(Plugin[ProxyRewriteConfig]):
    """Rewrites requests."""

    name = "proxy-rewrite"
    order = 1008
    Config = ProxyRewriteConfig
    preview = "yes"
    is_shareable = True

    def __init__(self, config: ProxyRewriteConfig, services: PluginServices) -> None:
        super().__init__(config, services)
        self._uri = Template(config.uri) if config.uri is not None else None
        self._host = Template(config.host) if config.host is not None else None
        pairs = zip(config.regex_uri[::2], config.regex_uri[1::2], strict=True)
        self._substitutions = [Substitution(*pair, ignore_case=config.regex_ignore_case) for pair in pairs]
        self._stripped = [compile_pattern(f"^(?:{pattern})") for pattern in config.strip_regex]
        headers = config.headers
        self._set = [(name, [Template(text) for text in texts_of(value)]) for name, value in headers.set.items()]
        self._added = [(name, Template(text)) for name, value in headers.add.items() for text in texts_of(value)]

    def on_request(self, request: Request) -> None:
        """Make the changes."""
        config = self.config
        caught = self._rewrite_path(request)
        if config.add_prefix is not None:
            request.path = config.add_prefix.rstrip("/") + request.path
        if self._host is not None:
            request.upstream_host = self._host.render(request, caught)
        if config.method is not None:
            request.method = config.method
        for name in config.headers.remove:
            request.headers.remove_named(name)
        for name, templates in self._set:
            values = [checked_value(template.render(request, caught)) for template in templates]
            first, *others = [value for value in values if value] or [""]
            if first:
                request.headers.set(name, first)
            else:
                request.headers.remove(name)
            for value in others:
                request.headers.add(name, value)
        for name, template in self._added:
            request.headers.add(name, template.render(request, caught))

    def _rewrite_path(self, request: Request) -> tuple[str, ...]:
        """Change the path; return what a pattern's groups caught."""
        if self._uri is not None:
            _set_target(request, self._uri.render(request))
            return ()
        time_left = SearchTime(request.path)
        for substitution in self._substitutions:
            time_left.check()
            changed = substitution.apply(request.path, request)
            if changed is not None:
                _set_target(request, changed[0])
                return changed[1]
        cut = self._prefix_length(request.path, time_left)
        if cut is not None:
            if self.config.forwarded_prefix:
                request.headers.set("X-Forwarded-Prefix", request.path[:cut])
            replacement = self.config.replace_prefix.replacement if self.config.replace_prefix is not None else ""
            rest = request.path[cut:]
            request.path = f"{replacement.rstrip('/')}{rest}" if rest.startswith("/") else f"{replacement}{rest}"
            if not request.path.startswith("/"):
                request.path = f"/{request.path}"
        return ()

    def _prefix_length(self, path: str, time_left: SearchTime) -> int | None:
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
            time_left.check()
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
