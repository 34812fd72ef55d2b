"""The directives that have a meaning here, and the blocks that they stand in.

All or nothing: a directive that is not in the table, or that says what cannot be said here, refuses the snippet.
"""

from collections.abc import Iterator
from typing import Final, NamedTuple

from pydantic import ValidationError

from headgate.common.perl_patterns import is_linear
from headgate.common.table import PathMatch, PathType
from headgate.translator.snippets import headers, rewriting, settings
from headgate.translator.snippets.access import read_auth_variable, read_methods, read_rule
from headgate.translator.snippets.errors import SnippetError
from headgate.translator.snippets.grammar import Directive, parse
from headgate.translator.snippets.level import (
    AccessRule,
    Branch,
    Level,
    LimitExcept,
    Location,
    NamedLocation,
    Program,
    Said,
    Setting,
)
from headgate.translator.snippets.scope import Context, Scope, names_defined
from headgate.translator.snippets.settings import Reader

_HSL: Final = Context.HTTP | Context.SERVER | Context.LOCATION
_REWRITE: Final = Context.SERVER | Context.LOCATION | Context.SERVER_IF | Context.LOCATION_IF
_HEADERS: Final = _HSL | Context.LOCATION_IF
_TO_UPSTREAM: Final = _HSL | Context.AUTH
_LIMITS: Final = _HSL | Context.LIMIT_EXCEPT
_MAX_LOCATIONS: Final = 100


class _Row(NamedTuple):
    """A directive without a block."""

    contexts: Context
    least: int
    most: int
    read: Reader


_MANY: Final = 1000
_TABLE: Final[dict[str, _Row]] = {
    "access_log": _Row(_HEADERS | Context.LIMIT_EXCEPT, 1, _MANY, settings.read_access_log),
    "add_header": _Row(_HEADERS, 2, 3, headers.read_add_header),
    "allow": _Row(_LIMITS, 1, 1, read_rule),
    "auth_basic": _Row(_LIMITS, 1, 1, settings.read_off),
    "auth_request": _Row(_HSL, 1, 1, settings.read_off),
    "auth_request_set": _Row(Context.LOCATION, 2, 2, read_auth_variable),
    "break": _Row(_REWRITE, 0, 0, rewriting.read_break),
    "client_max_body_size": _Row(_HSL, 1, 1, settings.read_body_size),
    "default_type": _Row(_HSL, 1, 1, settings.read_default_type),
    "deny": _Row(_LIMITS, 1, 1, read_rule),
    "error_page": _Row(_HSL, 2, _MANY, rewriting.read_error_page),
    "expires": _Row(_HEADERS, 1, 2, headers.read_expires),
    "grpc_ssl_ciphers": _Row(Context.LOCATION, 1, 1, settings.read_upstream_ciphers),
    "grpc_ssl_name": _Row(Context.LOCATION, 1, 1, settings.read_upstream_name),
    "grpc_ssl_verify": _Row(Context.LOCATION, 1, 1, settings.read_off),
    "gzip": _Row(_HEADERS, 1, 1, settings.read_gzip),
    "gzip_comp_level": _Row(_HSL, 1, 1, settings.read_gzip_level),
    "gzip_http_version": _Row(_HSL, 1, 1, settings.read_gzip_version),
    "gzip_min_length": _Row(_HSL, 1, 1, settings.read_gzip_length),
    "gzip_types": _Row(_HSL, 1, _MANY, settings.read_gzip_types),
    "gzip_vary": _Row(_HSL, 1, 1, settings.read_gzip_vary),
    "more_clear_headers": _Row(_HEADERS, 1, _MANY, headers.read_more_clear_headers),
    "more_clear_input_headers": _Row(_HEADERS, 1, _MANY, headers.read_more_clear_input),
    "more_set_headers": _Row(_HEADERS, 1, _MANY, headers.read_more_set_headers),
    "more_set_input_headers": _Row(_HEADERS, 1, _MANY, headers.read_more_set_input),
    "proxy_connect_timeout": _Row(_TO_UPSTREAM, 1, 1, settings.seconds_to("timeouts.connect_s")),
    "proxy_hide_header": _Row(_HSL, 1, 1, headers.read_hide),
    "proxy_pass_header": _Row(_HSL, 1, 1, headers.read_pass),
    "proxy_read_timeout": _Row(_TO_UPSTREAM, 1, 1, settings.seconds_to("timeouts.read_s")),
    "proxy_request_buffering": _Row(_HSL, 1, 1, settings.read_request_buffering),
    "proxy_send_timeout": _Row(_TO_UPSTREAM, 1, 1, settings.seconds_to("timeouts.send_s")),
    "proxy_ssl_ciphers": _Row(Context.LOCATION, 1, 1, settings.read_upstream_ciphers),
    "proxy_ssl_name": _Row(Context.LOCATION, 1, 1, settings.read_upstream_name),
    "proxy_ssl_verify": _Row(Context.LOCATION, 1, 1, settings.read_off),
    "proxy_set_header": _Row(_TO_UPSTREAM, 2, 2, headers.read_proxy_set_header),
    "return": _Row(_REWRITE, 1, 2, rewriting.read_return),
    "rewrite": _Row(_REWRITE, 2, 3, rewriting.read_rewrite),
    "set": _Row(_REWRITE, 2, 2, rewriting.read_set),
    "sub_filter": _Row(_HSL, 2, 2, settings.read_sub_filter),
    "sub_filter_once": _Row(_HSL, 1, 1, settings.read_sub_filter_once),
    "sub_filter_types": _Row(_HSL, 1, _MANY, settings.read_sub_filter_types),
}
_INNER: Final = (
    "aio chunked_transfer_encoding client_body_buffer_size client_body_timeout client_header_buffer_size "
    "client_header_timeout error_log etag grpc_buffer_size grpc_ssl_server_name grpc_ssl_session_reuse "
    "gzip_buffers gzip_disable gzip_proxied http2_push_preload ignore_invalid_headers keepalive_requests "
    "keepalive_timeout large_client_header_buffers log_not_found merge_slashes port_in_redirect proxy_buffer_size "
    "proxy_buffering proxy_buffers proxy_busy_buffers_size proxy_headers_hash_bucket_size "
    "proxy_headers_hash_max_size proxy_http_version proxy_ignore_client_abort proxy_max_temp_file_size "
    "proxy_pass_request_body proxy_pass_request_headers proxy_socket_keepalive proxy_ssl_server_name "
    "proxy_ssl_session_reuse proxy_temp_file_write_size reset_timedout_connection rewrite_log send_timeout "
    "sendfile sendfile_max_chunk server_name_in_redirect server_tokens sub_filter_last_modified tcp_nodelay "
    "tcp_nopush types_hash_max_size underscores_in_headers uninitialized_variable_warn"
)
NO_COUNTERPART: Final = frozenset(_INNER.split())
"""Directives about nginx's own memory, connections and files: read, checked for nothing, and left without effect."""


def interpret(text: str, scope: Scope) -> Level:
    """Return what a snippet says.

    Raises:
        SnippetError: it cannot be followed as it is written.
    """
    directives = parse(text)
    known = Scope(scope.context, scope.constants, scope.defined | names_defined(directives))
    try:
        return _Reading().read(directives, known)
    except ValidationError as error:
        reason = error.errors(include_url=False, include_input=False)[0]["msg"]
        raise SnippetError(f"cannot be said in the table: {reason}", 1) from error


class _Reading:
    """Counts branches over all blocks of a snippet."""

    def __init__(self) -> None:
        self._branches = 0
        self._locations = 0

    def read(self, directives: tuple[Directive, ...], scope: Scope) -> Level:
        return Level(tuple(said for directive in directives for said in self._read_one(directive, scope)))

    def _read_one(self, directive: Directive, scope: Scope) -> Iterator[Said]:
        if directive.block is not None:
            yield from self._read_block(directive, directive.block, scope)
            return
        row = _TABLE.get(directive.name)
        if row is None:
            if directive.name not in NO_COUNTERPART:
                raise directive.error("is not followed here")
            return
        if scope.context not in row.contexts:
            raise directive.error("does not stand here in nginx")
        if not row.least <= len(directive.args) <= row.most:
            raise directive.error("has too few or too many values")
        yield from row.read(directive, scope)

    def _read_block(self, directive: Directive, block: tuple[Directive, ...], scope: Scope) -> Iterator[Said]:
        if directive.name == "if" and scope.context in Context.SERVER | Context.LOCATION:
            yield from self._read_if(directive, block, scope)
        elif directive.name == "limit_except" and scope.context is Context.LOCATION:
            rules = self.read(block, scope.within(Context.LIMIT_EXCEPT)).of(AccessRule)
            yield LimitExcept(read_methods(directive), rules)
        elif directive.name == "location" and scope.context is Context.SERVER:
            is_named = len(directive.args) == 1 and directive.args[0].startswith("@")
            yield (self._read_named if is_named else self._read_location)(directive, block, scope)
        elif directive.name in ("if", "limit_except", "location"):
            raise directive.error("does not stand here in nginx, or not with a meaning here")
        else:
            raise directive.error("is not followed here")

    def _read_if(self, directive: Directive, block: tuple[Directive, ...], scope: Scope) -> Iterator[Said]:
        is_server = scope.context is Context.SERVER
        level = self.read(block, scope.within(Context.SERVER_IF if is_server else Context.LOCATION_IF))
        rest = Level(tuple(said for said in level if not isinstance(said, Program)))
        self._branches += 1
        # In nginx the block that held last is the one whose headers count, also if it has none of its own.
        number = 0 if is_server else self._branches
        yield Program(rewriting.if_step(directive, scope, level.steps, number))
        if rest.said:
            yield Branch(number, rest)

    def _read_named(self, directive: Directive, block: tuple[Directive, ...], scope: Scope) -> NamedLocation:
        level = self.read(block, scope.within(Context.LOCATION))
        others = [said for said in level if not isinstance(said, Program | Setting)]
        if others or level.settings().keys() - {"default_type"} or not level.steps:
            raise directive.error("a named location is followed with return, set, if and default_type only")
        return NamedLocation(directive.args[0], level.steps, str(level.settings().get("default_type", "text/html")))

    def _read_location(self, directive: Directive, block: tuple[Directive, ...], scope: Scope) -> Location:
        self._locations += 1
        if self._locations > _MAX_LOCATIONS:
            raise directive.error(f"a snippet has at most {_MAX_LOCATIONS} locations")
        modifier, path = _path_of(directive)
        level = self.read(block, scope.within(Context.LOCATION))
        if path.type is PathType.REGEX and level.steps:
            # What the pattern of the location caught is known to the program.
            step = rewriting.path_step(directive.args[1], ignore_case=path.ignore_case)
            level = Level((Program(step), *level.said))
        return Location(path, modifier, level, directive)


def _path_of(directive: Directive) -> tuple[str, PathMatch]:
    """Return modifier and path of a location. Raises SnippetError."""
    words = directive.args
    modifier, path = words if len(words) == 2 else ("", words[0] if len(words) == 1 else "")
    if not path or path.startswith("@"):
        raise directive.error("needs a path")
    if modifier in ("~", "~*"):
        rewriting.check_pattern(directive, path)
        value = _from_beginning(path)
        ignores_case = modifier == "~*"
        is_perl = not is_linear(value)
        return modifier, PathMatch(type=PathType.REGEX, value=value, ignore_case=ignores_case, perl=is_perl)
    if modifier not in ("", "=", "^~"):
        raise directive.error(f"{modifier[:40]!r} is none of =, ^~, ~ and ~*")
    if not path.startswith("/"):
        raise directive.error("a path begins with a slash")
    kind = PathType.EXACT if modifier == "=" else PathType.STRING_PREFIX
    return modifier, PathMatch(type=kind, value=path)


def _from_beginning(pattern: str) -> str:
    """Return a pattern that is looked for anywhere as one that a path has to match from its beginning."""
    depth = 0
    for at, char in enumerate(pattern):
        depth += (char == "(") - (char == ")")
        if char == "|" and depth <= 0:
            break
        if at == len(pattern) - 1 and pattern.startswith("^"):
            return pattern[1:]
    return f".*(?:{pattern})"
