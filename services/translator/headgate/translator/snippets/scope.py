"""Where a directive stands, and the variables that it may name there.

nginx refuses a configuration that names a variable which nothing defines, and so is a snippet here: a condition on a
variable that is always empty would guard nothing.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import Flag, auto
from types import MappingProxyType
from typing import Final

from headgate.common.plugins.traffic.nginx_rewrite import CAUGHT
from headgate.common.plugins.variables import phase_of
from headgate.translator.snippets.grammar import Directive


class Context(Flag):
    """A block of nginx's configuration, by what it is in ingress-nginx."""

    HTTP = auto()
    """`http-snippet` of the ConfigMap."""
    SERVER = auto()
    """`server-snippet`."""
    LOCATION = auto()
    """`configuration-snippet`, `location-snippet`, and location blocks in a `server-snippet`."""
    SERVER_IF = auto()
    LOCATION_IF = auto()
    LIMIT_EXCEPT = auto()
    AUTH = auto()
    """`auth-snippet`: the location of questions to an authentication service."""


OF_INGRESS: Final = frozenset(
    ("ingress_name", "location_path", "namespace", "proxy_host", "proxy_upstream_name", "service_name")
)
"""Variables that ingress-nginx sets in each location, besides `service_port`."""
ANY_CONSTANTS: Final[Mapping[str, str]] = MappingProxyType(dict.fromkeys((*OF_INGRESS, "service_port"), "x"))
"""Stand for those of a path where a snippet is read without one."""
_RENAMED: Final[Mapping[str, str]] = MappingProxyType(
    {
        "full_x_forwarded_for": "http_x_forwarded_for",
        "pass_port": "server_port",
        "pass_server_port": "server_port",
        "proxy_add_x_forwarded_for": "http_x_forwarded_for",
        "req_id": "request_id",
        "the_real_ip": "remote_addr",
    }
)
_NAMES: Final = (
    "args best_http_host content_length content_type document_uri escaped_request_uri host hostname https is_args msec "
    "pass_access_scheme query_string realip_remote_addr realip_remote_port remote_addr remote_port remote_user request "
    "request_id request_method request_uri scheme server_addr server_name server_port server_protocol ssl_protocol "
    "status time_iso8601 time_local upstream_addr upstream_status uri"
)
_KNOWN: Final = frozenset(_NAMES.split())
_PREFIXES: Final = ("http_", "arg_", "cookie_", "sent_http_", "upstream_http_")
_REFERENCE: Final = re.compile(r"\$(?:\{(\w+)\}|([1-9])|(\w+))", re.ASCII)
_NAMED_GROUP: Final = re.compile(r"\(\?P?<([A-Za-z_]\w*)>")


@dataclass(frozen=True, slots=True)
class Scope:
    """What is known at a directive."""

    context: Context
    constants: Mapping[str, str] = field(default_factory=dict)
    """Variables whose values are known: those that ingress-nginx sets for a path."""
    defined: frozenset[str] = frozenset()
    """Variables that `set` or a named group defines."""

    def within(self, context: Context) -> "Scope":
        """Return the scope of a block."""
        return replace(self, context=context)

    def template(self, directive: Directive, word: str, *, is_program: bool = False) -> str:
        """Return a word as templates of plugins are written. Raises SnippetError.

        What a pattern caught is known by its number in the program of the rewrite phase, elsewhere as a variable.
        """
        parts, position = [], 0
        for found in _REFERENCE.finditer(word):
            parts += [
                _literal(directive, word[position : found.start()]),
                self._reference(directive, found, is_program),
            ]
            position = found.end()
        return "".join((*parts, _literal(directive, word[position:])))

    def _reference(self, directive: Directive, found: "re.Match[str]", is_program: bool) -> str:
        if found[2]:
            return f"${{{'' if is_program else CAUGHT}{found[2]}}}"
        name = found[1] or found[3]
        if name in self.constants:
            value = self.constants[name]
            if _REFERENCE.search(value):
                raise directive.error(f"${name} is {value!r} here, whose $ cannot stand in a text")
            return value
        return f"${{{self.variable(directive, name)}}}"

    def variable(self, directive: Directive, name: str) -> str:
        """Return the name that a variable has for plugins. Raises SnippetError."""
        name = _RENAMED.get(name, name)
        is_known = name in _KNOWN or any(name.startswith(prefix) and name != prefix for prefix in _PREFIXES)
        if is_known or name in self.defined:
            return name
        if name in OF_INGRESS or name == "service_port":
            raise directive.error(f"${name} is known within a path of an Ingress only")
        if name.startswith("geoip"):
            raise directive.error(f"${name}: there is no database of places here")
        raise directive.error(f"there is no variable ${name}")


def definable(directive: Directive, name: str) -> str:
    """Return a name that `set` may define. Raises SnippetError."""
    if name == "args":
        return name
    if name in OF_INGRESS:
        raise directive.error(f"${name} is set by the controller; a canary chooses another backend")
    if name in _KNOWN or name in _RENAMED or phase_of(name) is not None:
        raise directive.error(f"${name} is a variable of the request, which cannot be set")
    return name


def names_defined(directives: tuple[Directive, ...]) -> frozenset[str]:
    """Return the variables that `set` and named groups define, wherever they stand: nginx knows them everywhere."""
    names: set[str] = set()
    for directive in directives:
        if directive.name in ("set", "auth_request_set") and directive.args:
            names.add(directive.args[0].removeprefix("$"))
        if directive.name in ("rewrite", "if", "location"):
            names |= {name for word in directive.args for name in _NAMED_GROUP.findall(word)}
        names |= names_defined(directive.block or ())
    return frozenset(names)


def _literal(directive: Directive, text: str) -> str:
    if "$" in text:
        raise directive.error("a $ has to be followed by the name of a variable")
    return text
