"""Directives about who may come: `allow`, `deny`, `limit_except`."""

from collections.abc import Iterator
from typing import Final

from headgate.common.plugins.fields import check_network
from headgate.translator.snippets.grammar import Directive
from headgate.translator.snippets.level import AccessRule, Said
from headgate.translator.snippets.scope import Scope

_NAMES: Final = "GET HEAD POST PUT DELETE MKCOL COPY MOVE OPTIONS PROPFIND PROPPATCH LOCK UNLOCK PATCH"
METHODS: Final = frozenset(_NAMES.split())


def read_rule(directive: Directive, scope: Scope) -> Iterator[Said]:
    """`allow` and `deny`: an address, a network or `all`."""
    network = directive.args[0]
    if network != "all":
        try:
            check_network(network)
        except ValueError as error:
            raise directive.error(str(error)) from error
    yield AccessRule(directive.name == "allow", network)


def read_methods(directive: Directive) -> tuple[str, ...]:
    """Return the methods that `limit_except` leaves alone; GET is HEAD, too. Raises SnippetError."""
    unknown = next((word for word in directive.args if word.upper() not in METHODS), None)
    if unknown is not None or not directive.args:
        raise directive.error(f"{(unknown or '')[:40]!r} is not a method")
    methods = {word.upper() for word in directive.args}
    return tuple(sorted(methods | ({"HEAD"} if "GET" in methods else set())))
