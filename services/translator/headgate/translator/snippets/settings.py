"""Directives that set a field of the route, or what goes through it: times, sizes, compression, substitutions."""

import re
from collections.abc import Callable, Iterator
from typing import Final

from headgate.translator.snippets.grammar import Directive
from headgate.translator.snippets.level import Said, Setting, Substitution, UpstreamTlsSetting
from headgate.translator.snippets.scope import Scope
from headgate.translator.snippets.values import read_seconds, read_size, read_switch

UNLIMITED: Final = 1 << 50
"""Bytes of a body, for `client_max_body_size 0`."""
Reader = Callable[[Directive, Scope], Iterator[Said]]


def seconds_to(name: str) -> Reader:
    """Return what reads a time into a setting."""

    def read(directive: Directive, scope: Scope) -> Iterator[Said]:
        seconds = read_seconds(directive, directive.args[0])
        if not seconds:
            raise directive.error("must be more than 0")
        yield Setting(name, seconds)

    return read


def upstream_tls_to(name: str, pattern: str, what: str) -> Reader:
    """Return what reads a word into a field of `BackendTls`."""

    def read(directive: Directive, scope: Scope) -> Iterator[Said]:
        value = scope.template(directive, directive.args[0])
        if not re.fullmatch(pattern, value, re.ASCII):
            raise directive.error(f"must be {what}")
        yield UpstreamTlsSetting(directive.name.startswith("grpc_"), name, value, directive)

    return read


read_upstream_name = upstream_tls_to("server_name", r"[A-Za-z0-9._-]+", "a name without variables of the request")
read_upstream_ciphers = upstream_tls_to("ciphers", r"[A-Za-z0-9+:_!@=-]+", "ciphers in OpenSSL's notation")


def read_body_size(directive: Directive, scope: Scope) -> Iterator[Said]:
    """`client_max_body_size size`; 0 is no limit."""
    yield Setting("max_body", read_size(directive, directive.args[0]) or UNLIMITED)


def read_request_buffering(directive: Directive, scope: Scope) -> Iterator[Said]:
    """`proxy_request_buffering on | off`."""
    yield Setting("buffer_request", read_switch(directive, directive.args[0]))


def read_default_type(directive: Directive, scope: Scope) -> Iterator[Said]:
    """`default_type type`."""
    yield Setting("default_type", directive.args[0])


def read_access_log(directive: Directive, scope: Scope) -> Iterator[Said]:
    """`access_log off`."""
    if directive.args != ("off",):
        raise directive.error("logs go where the gateway's settings say; off is followed")
    yield Setting("access_log_share", 0.0)


def read_gzip(directive: Directive, scope: Scope) -> Iterator[Said]:
    """`gzip on | off`."""
    yield Setting("gzip", read_switch(directive, directive.args[0]))


def read_gzip_types(directive: Directive, scope: Scope) -> Iterator[Said]:
    """`gzip_types type...`: besides text/html."""
    is_any = "*" in directive.args
    yield Setting("gzip.types", ("*",) if is_any else tuple(dict.fromkeys(("text/html", *directive.args))))


def read_gzip_length(directive: Directive, scope: Scope) -> Iterator[Said]:
    """`gzip_min_length bytes`."""
    yield Setting("gzip.min_length", max(1, read_size(directive, directive.args[0])))


def read_gzip_level(directive: Directive, scope: Scope) -> Iterator[Said]:
    """`gzip_comp_level level`."""
    level = read_size(directive, directive.args[0])
    if not 1 <= level <= 9:
        raise directive.error("must be from 1 to 9")
    yield Setting("gzip.comp_level", level)


def read_gzip_vary(directive: Directive, scope: Scope) -> Iterator[Said]:
    """`gzip_vary on | off`."""
    yield Setting("gzip.vary", read_switch(directive, directive.args[0]))


def read_gzip_version(directive: Directive, scope: Scope) -> Iterator[Said]:
    """`gzip_http_version 1.0 | 1.1`."""
    if directive.args[0] not in ("1.0", "1.1"):
        raise directive.error("must be 1.0 or 1.1")
    yield Setting("gzip.http_version", directive.args[0])


def read_sub_filter(directive: Directive, scope: Scope) -> Iterator[Said]:
    """`sub_filter text replacement`: constants."""
    if any("$" in word for word in directive.args):
        raise directive.error("variables are not followed here")
    yield Substitution(*directive.args)


def read_sub_filter_once(directive: Directive, scope: Scope) -> Iterator[Said]:
    """`sub_filter_once on | off`."""
    yield Setting("sub_filter.once", read_switch(directive, directive.args[0]))


def read_sub_filter_types(directive: Directive, scope: Scope) -> Iterator[Said]:
    """`sub_filter_types type...`: besides text/html."""
    is_any = "*" in directive.args
    yield Setting("sub_filter.types", () if is_any else ("text/html", *directive.args))


def read_nothing(directive: Directive, scope: Scope) -> Iterator[Said]:
    """Take a directive about nginx's own memory, connections or files, which have no counterpart here."""
    yield from ()


def read_off(directive: Directive, scope: Scope) -> Iterator[Said]:
    """Take a directive that turns off what is off here in any case."""
    if directive.args != ("off",):
        raise directive.error("is followed as off only")
    yield from ()
