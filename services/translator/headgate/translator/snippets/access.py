"""Directives about who may come: `allow`, `deny`, `limit_except`."""

from collections.abc import Iterator
from typing import Final

from headgate.common.plugins.fields import check_network
from headgate.translator.snippets.grammar import Directive
from headgate.translator.snippets.level import AccessRule, AuthVariable, Said
from headgate.translator.snippets.scope import Scope, definable

_NAMES: Final = "GET HEAD POST PUT DELETE MKCOL COPY MOVE OPTIONS PROPFIND PROPPATCH LOCK UNLOCK PATCH"
_OF_ANSWER: Final = "upstream_http_"
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


def read_auth_variable(directive: Directive, scope: Scope) -> Iterator[Said]:
    """`auth_request_set $variable $upstream_http_name`."""
    name, value = (word.removeprefix("$") for word in directive.args)
    header = value.removeprefix(_OF_ANSWER)
    if header == value or not header or not all(word.startswith("$") for word in directive.args):
        raise directive.error("takes a variable, and $upstream_http_ with the name of a header")
    yield AuthVariable(definable(directive, name), header.replace("_", "-"))


def read_methods(directive: Directive) -> tuple[str, ...]:
    """Return the methods that `limit_except` leaves alone; GET is HEAD, too. Raises SnippetError."""
    unknown = next((word for word in directive.args if word.upper() not in METHODS), None)
    if unknown is not None or not directive.args:
        raise directive.error(f"{(unknown or '')[:40]!r} is not a method")
    methods = {word.upper() for word in directive.args}
    return tuple(sorted(methods | ({"HEAD"} if "GET" in methods else set())))
