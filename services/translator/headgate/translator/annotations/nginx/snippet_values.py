"""Snippets as values of options: a text that can be interpreted."""

from collections.abc import Callable
from typing import Final

from headgate.translator.snippets.compose import compose
from headgate.translator.snippets.interpret import interpret
from headgate.translator.snippets.level import NOTHING, Location, UpstreamTlsSetting
from headgate.translator.snippets.scope import ANY_CONSTANTS, Context, Scope
from headgate.translator.snippets.streams import read_streams

SNIPPETS_FOLLOWED: Final = "directives that have a meaning here are followed, and a snippet with another one is refused"


def streams(text: str) -> str:
    """Take a snippet of the stream block that can be followed."""
    read_streams(text)
    return text


def snippet(context: Context) -> Callable[[str], str]:
    """Return what takes a snippet that can be followed in a context of the ConfigMap."""
    is_location = context is Context.LOCATION

    def read(text: str) -> str:
        level = interpret(text, Scope(context, ANY_CONSTANTS if is_location else {}))
        if location := next(iter(level.of(Location)), None):
            raise location.directive.error("a location of all servers is not followed here")
        if setting := next(iter(level.of(UpstreamTlsSetting)), None):
            raise setting.directive.error("is followed in a configuration-snippet only")
        compose(*((NOTHING, level) if is_location else (level, NOTHING)))
        return text

    return read
