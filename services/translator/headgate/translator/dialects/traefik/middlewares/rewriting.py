"""Middlewares about paths and redirects, as `proxy-rewrite` and `redirect` say them."""

import re
from typing import Final
from urllib.parse import quote

from headgate.common.plugins.traffic.proxy_rewrite import ProxyRewriteConfig
from headgate.common.plugins.traffic.redirect import RedirectConfig
from headgate.common.table import PluginUse
from headgate.translator.dialects.traefik.middlewares.making import Making, Unfollowed, literal
from headgate.translator.dialects.traefik.models.rewriting import (
    AddPrefix,
    RedirectRegex,
    RedirectScheme,
    Replacement,
    ReplacePath,
    StripPrefix,
    StripPrefixRegex,
)

_DEFAULT_PORTS: Final = {"http": "80", "https": "443"}
_IN_PATHS: Final = "/$&+,:;=@!'()*[]"
"""What stands in a path as it is; a prefix is a decoded path."""
_QUESTION_MARK: Final = "%3F"
"""As it stands in a path, in which none begins a query."""
_SCHEME: Final = re.compile("[a-z][a-z0-9+.-]*")
_OPENING: Final = re.compile(
    r"\\Q.*?(?:\\E|$)|\\.|\[\^?\]?(?:\[:[^]]*:\]|\\.|[^]\\])*\]|(\((?!\?)|\(\?P?<(\w+)>)", re.DOTALL
)
"""What begins a group that catches; texts and classes, in which a parenthesis is none, are passed over."""
_GROUP: Final = re.compile(r"\$(?:\{([0-9A-Za-z_]+)\}|([0-9A-Za-z_]+)|\$)?")


def add_prefix(written: AddPrefix, making: Making) -> tuple[PluginUse, ...]:
    """Put something before the path."""
    if not written.prefix:
        raise Unfollowed("Required", "prefix", "must be given")
    prefix = quote(written.prefix, safe=_IN_PATHS)
    return (PluginUse.of(ProxyRewriteConfig(add_prefix=prefix if prefix.startswith("/") else f"/{prefix}")),)


def strip_prefix(written: StripPrefix, making: Making) -> tuple[PluginUse, ...]:
    """Take the path's beginning away."""
    if not written.prefixes:
        return ()
    prefixes = tuple(prefix.strip() for prefix in written.prefixes)
    return (PluginUse.of(ProxyRewriteConfig(strip_prefixes=prefixes, forwarded_prefix=True, refuses_unclean=True)),)


def strip_prefix_regex(written: StripPrefixRegex, making: Making) -> tuple[PluginUse, ...]:
    """Take the path's beginning away, by patterns."""
    if not written.regex:
        return ()
    patterns = tuple(pattern.strip() for pattern in written.regex)
    return (PluginUse.of(ProxyRewriteConfig(strip_regex=patterns, forwarded_prefix=True, refuses_unclean=True)),)


def replace_path(written: ReplacePath, making: Making) -> tuple[PluginUse, ...]:
    """Set another path."""
    path = literal(written.path.replace("?", _QUESTION_MARK))
    return (PluginUse.of(ProxyRewriteConfig(uri=path, replaced_path=True)),)


def replace_path_regex(written: Replacement, making: Making) -> tuple[PluginUse, ...]:
    """Set another path, by a pattern."""
    if not written.regex:
        raise Unfollowed("Required", "regex", "must be given")
    pattern = written.regex.strip()
    pair = (pattern, _replacement(written.replacement.strip().replace("?", _QUESTION_MARK), pattern))
    config = ProxyRewriteConfig(regex_uri=pair, replaced_path=True, replaces_all=True, refuses_unclean=True)
    return (PluginUse.of(config),)


def redirect_regex(written: RedirectRegex, making: Making) -> tuple[PluginUse, ...]:
    """Redirect URLs that a pattern takes."""
    if not written.regex:
        raise Unfollowed("Required", "regex", "must be given")
    pair = written.regex, _replacement(written.replacement, written.regex)
    return (_redirect(*pair, is_permanent=written.permanent, of_connection=True),)


def redirect_scheme(written: RedirectScheme, making: Making) -> tuple[PluginUse, ...]:
    """Redirect to another scheme and port; requests that came by them pass."""
    if not _SCHEME.fullmatch(written.scheme):
        raise Unfollowed("InvalidValue", "scheme", f"must be a scheme such as https, but is {written.scheme[:80]!r}")
    if written.port and not (written.port.isascii() and written.port.isdecimal() and 0 < int(written.port) < 65536):
        raise Unfollowed("InvalidValue", "port", f"must be a port number, but is {written.port[:80]!r}")
    port = f":{written.port}" if written.port not in ("", _DEFAULT_PORTS.get(written.scheme)) else ""
    pattern = r"^https?://(\[[^\]]*\]|[^/:?#]*)(?::[0-9]*)?(.*)$"
    return (_redirect(pattern, f"{written.scheme}://${{1}}{port}${{2}}", is_permanent=written.permanent),)


def _redirect(pattern: str, replacement: str, *, is_permanent: bool, of_connection: bool = False) -> PluginUse:
    config = RedirectConfig(
        regex_uri=(pattern, replacement),
        match_url=True,
        of_connection=of_connection,
        ret_code=301 if is_permanent else 302,
        keep_method=True,
        replaces_all=True,
    )
    return PluginUse.of(config)


def _replacement(written: str, pattern: str) -> str:
    """Return the replacement of a Go pattern as plugins have it: groups by number, and nothing else after a `$`. A
    group that the pattern does not have is empty, as in Go.
    """
    names, count = _groups(pattern)

    def group(found: re.Match[str]) -> str:
        name = found[1] or found[2]
        if name is None:
            return literal("$")
        number = int(name) if name.isascii() and name.isdecimal() and len(name) < 3 else names.get(name, -1)
        if number == 0:
            raise Unfollowed("UnsupportedField", "replacement", "cannot have $0: put the whole pattern into a group")
        return f"${{{number}}}" if 0 < number <= count else ""

    return _GROUP.sub(group, written)


def _groups(pattern: str) -> tuple[dict[str, int], int]:
    """Return the named groups of a pattern with their numbers, and how many groups it has."""
    names: dict[str, int] = {}
    count = 0
    for found in _OPENING.finditer(pattern):
        if found[1] is not None:
            count += 1
            if found[2]:
                names[found[2]] = count
    return names, count
