"""Directives about headers, of requests on their way to the upstream and of answers."""

from collections.abc import Iterator
from typing import Final

from headgate.common.plugins.fields import BadHeader, checked_name, configured_value, is_reserved
from headgate.translator.snippets.grammar import Directive
from headgate.translator.snippets.level import (
    AddedHeader,
    Expires,
    HeaderFilter,
    HiddenHeader,
    InputFilter,
    PassedHeader,
    ProxyHeader,
    Said,
    Setting,
)
from headgate.translator.snippets.scope import Scope
from headgate.translator.snippets.values import read_seconds

_OF_TUNNELS: Final = ("connection", "upgrade")
"""The gateway writes them by itself: a WebSocket passes, and other connections are kept."""
_YEARS_10: Final = 315360000


def read_add_header(directive: Directive, scope: Scope) -> Iterator[Said]:
    """`add_header name value [always]`."""
    name, value = directive.args[:2]
    if directive.args[2:] not in ((), ("always",)):
        raise directive.error(f"{directive.args[2][:40]!r} is not always")
    if not value:
        return
    yield AddedHeader(_name(directive, name), _value(directive, scope, value), always=len(directive.args) > 2)


def read_proxy_set_header(directive: Directive, scope: Scope) -> Iterator[Said]:
    """`proxy_set_header name value`."""
    name, value = directive.args
    if name.lower() in _OF_TUNNELS:
        return
    if name.lower() == "host":
        host = scope.template(directive, value)
        if host not in ("${host}", "${http_host}", "${best_http_host}"):
            yield Setting("host", host)
        return
    yield ProxyHeader(_name(directive, name), _value(directive, scope, value))


def read_hide(directive: Directive, scope: Scope) -> Iterator[Said]:
    """`proxy_hide_header name`."""
    yield HiddenHeader(_any_name(directive, directive.args[0]))


def read_pass(directive: Directive, scope: Scope) -> Iterator[Said]:
    """`proxy_pass_header name`."""
    yield PassedHeader(_any_name(directive, directive.args[0]))


def read_more_set_headers(directive: Directive, scope: Scope) -> Iterator[Said]:
    """`more_set_headers [-t types] [-s statuses] 'Name: value'...`."""
    options, lines = _options(directive, "ts")
    removed, kept = _lines(directive, scope, lines)
    yield HeaderFilter(removed, kept, _statuses(directive, options["s"]), options["t"])


def read_more_clear_headers(directive: Directive, scope: Scope) -> Iterator[Said]:
    """`more_clear_headers [-t types] [-s statuses] name...`."""
    options, names = _options(directive, "ts")
    removed = tuple(_any_name(directive, name) for name in names)
    yield HeaderFilter(removed, (), _statuses(directive, options["s"]), options["t"])


def read_more_set_input(directive: Directive, scope: Scope) -> Iterator[Said]:
    """`more_set_input_headers [-r] [-t types] 'Name: value'...`."""
    options, lines = _options(directive, "t", "r")
    removed, kept = _lines(directive, scope, lines)
    hosts = [value for name, value in kept if name.lower() == "host"]
    if hosts and not options["r"] and not options["t"]:
        yield Setting("host", hosts[-1])
    elif hosts:
        raise directive.error("Host is changed without -r and -t only")
    kept = tuple((name, value) for name, value in kept if name.lower() != "host")
    if removed or kept:
        yield InputFilter(removed, kept, bool(options["r"]), options["t"])


def read_more_clear_input(directive: Directive, scope: Scope) -> Iterator[Said]:
    """`more_clear_input_headers [-t types] name...`."""
    options, names = _options(directive, "t")
    yield InputFilter(tuple(_any_name(directive, name) for name in names), types=options["t"])


def read_expires(directive: Directive, scope: Scope) -> Iterator[Said]:
    """`expires time | epoch | max | off`."""
    text = directive.args[0]
    if text == "off":
        yield Expires()
    elif text == "epoch":
        yield Expires(constants=(("Expires", "Thu, 01 Jan 1970 00:00:01 GMT"), ("Cache-Control", "no-cache")))
    elif text == "max":
        until = ("Expires", "Thu, 31 Dec 2037 23:55:55 GMT")
        yield Expires(constants=(until, ("Cache-Control", f"max-age={_YEARS_10}")))
    elif text.startswith(("@", "$")) or text == "modified":
        raise directive.error(f"{text[:40]!r} is not followed; give a time, epoch, max or off")
    else:
        sign = -1 if text.startswith("-") else 1
        yield Expires(seconds=sign * int(read_seconds(directive, text.lstrip("+-"))))


def _options(directive: Directive, valued: str, plain: str = "") -> tuple[dict[str, tuple[str, ...]], tuple[str, ...]]:
    """Split the options of the module headers-more from what follows them."""
    options: dict[str, tuple[str, ...]] = dict.fromkeys((*valued, *plain), ())
    words, rest = list(directive.args), []
    while words:
        word = words.pop(0)
        if not word.startswith("-"):
            rest.append(word)
        elif word[1:] in tuple(plain):
            options[word[1:]] = ("on",)
        elif word[1:] in tuple(valued) and words:
            options[word[1:]] += tuple(words.pop(0).split())
        else:
            raise directive.error(f"the option {word[:40]!r} is not followed")
    if not rest:
        raise directive.error("names no header")
    return options, tuple(rest)


def _lines(
    directive: Directive, scope: Scope, lines: tuple[str, ...]
) -> tuple[tuple[str, ...], tuple[tuple[str, str], ...]]:
    """Split lines `Name: value`; those without a value remove the header."""
    removed: list[str] = []
    kept: list[tuple[str, str]] = []
    for line in lines:
        name, _, value = line.partition(":")
        if value.strip():
            checked = name.strip() if name.strip().lower() == "host" else _name(directive, name.strip())
            kept.append((checked, _value(directive, scope, value.strip())))
        else:
            removed.append(_any_name(directive, name.strip()))
    return tuple(removed), tuple(kept)


def _statuses(directive: Directive, words: tuple[str, ...]) -> tuple[str, ...]:
    statuses = tuple(each for word in words for each in word.split(",") if each)
    for status in statuses:
        if not (status.isascii() and status.isdecimal() and len(status) == 3):
            raise directive.error(f"{status[:40]!r} is not a status")
    return statuses


def _name(directive: Directive, name: str) -> str:
    try:
        return checked_name(name)
    except BadHeader as error:
        raise directive.error(str(error)) from error


def _any_name(directive: Directive, name: str) -> str:
    """Return a name, or the beginning of names with a `*` behind it."""
    if is_reserved(name):
        raise directive.error(f"header {name} is written by the gateway alone")
    if name != "*":
        _name(directive, name)
    return name


def _value(directive: Directive, scope: Scope, value: str) -> str:
    try:
        configured_value(value)
    except BadHeader as error:
        raise directive.error(str(error)) from error
    return scope.template(directive, value)
