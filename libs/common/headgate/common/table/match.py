"""Which requests a route takes."""

from enum import StrEnum
from typing import Self

from pydantic import model_validator

from headgate.common.table.base import Entry


class PathType(StrEnum):
    """How a path is compared with the request's path, after percent-decoding of neither."""

    EXACT = "exact"
    """Byte-equal."""
    PREFIX = "prefix"
    """Element-wise on `/`; a trailing slash is ignored on both sides (Kubernetes `Prefix`)."""
    STRING_PREFIX = "string-prefix"
    """Byte-wise: `/foo` takes `/foobar` too (nginx locations, APISIX `/foo*`)."""
    REGEX = "regex"
    """An RE2 pattern that the path has to match from its beginning; not necessarily to its end."""


class PathMatch(Entry):
    """Which request paths a route takes."""

    type: PathType
    value: str
    ignore_case: bool = False
    """For `REGEX` only."""
    perl: bool = False
    """For `REGEX` only: one of Perl that RE2 does not take, for look-around and back-references; matching it is bounded
    (`headgate.common.perl_patterns`), and a request that comes to a bound is refused."""
    decoded: bool = False
    """For `REGEX` only: all escapes of the path are decoded before, but those of reserved characters (RFC 3986 section
    2.2) and of `%` (Traefik)."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.ignore_case and self.type is not PathType.REGEX:
            raise ValueError("ignore_case is for regex paths only")
        if self.perl and self.type is not PathType.REGEX:
            raise ValueError("perl is for regex paths only")
        if self.decoded and self.type is not PathType.REGEX:
            raise ValueError("decoded is for regex paths only")
        return self


class Subject(StrEnum):
    """What a comparison looks at."""

    METHOD = "method"
    SCHEME = "scheme"
    TRANSPORT = "transport"
    """`https` on a port that speaks TLS, else `http`, whatever a trusted proxy says of the client's scheme."""
    HOST = "host"
    """Lower case, without port."""
    PATH = "path"
    """Without query, in the form in which paths of routes are compared."""
    DECODED_PATH = "decoded-path"
    """The same with all escapes decoded, but those of reserved characters and of `%`."""
    HEADER = "header"
    """By name, in any case; of several the values joined by `, `, unless each counts (`Compare.any_value`)."""
    QUERY = "query"
    """By name; of several the first, unless each counts. Percent-decoded, `+` is a space."""
    COOKIE = "cookie"
    """By name; of several the first."""
    QUERY_STRING = "query-string"
    """As sent, without `?`; absent if there is none."""
    TARGET = "target"
    """Path and query as sent."""
    CLIENT = "client"
    """Address of the client, the one that trusted proxies name where there are such."""
    PEER = "peer"
    """Address of who is connected: a trusted proxy's, if the client comes through one. A PROXY header counts."""
    ALPN = "alpn"
    """Of stream routes only: one of the protocols that a client offers in its ClientHello."""
    BODY = "body"
    """A field of a form or a JSON body, by name; JSON by a path of names and indexes with dots: `order.items.0.sku`."""


class Operator(StrEnum):
    """How a value is compared. Absent values satisfy `NOT_*` comparisons only by way of `Not`: alone they fail."""

    PRESENT = "present"
    EQUALS = "equals"
    """To any of the given values."""
    PREFIX = "prefix"
    SUFFIX = "suffix"
    CONTAINS = "contains"
    REGEX = "regex"
    """RE2, anywhere in the value."""
    LESS = "less"
    """As decimal numbers; what is none fails."""
    GREATER = "greater"
    AT_MOST = "at-most"
    AT_LEAST = "at-least"
    NETWORK = "network"
    """An address within any of the given networks (CIDR)."""


_NAMED = {Subject.HEADER, Subject.QUERY, Subject.COOKIE, Subject.BODY}
_REPEATED = {Subject.HEADER, Subject.QUERY}


class Compare(Entry):
    """One comparison. Several `values` are alternatives."""

    subject: Subject
    name: str = ""
    """Of the header, query parameter, cookie or body field; of the latter a path, in which `*` stands for each member:
    one of them has to satisfy the comparison."""
    operator: Operator = Operator.EQUALS
    values: tuple[str, ...] = ()
    ignore_case: bool = False
    any_value: bool = False
    """Of headers and query parameters: one of several values of the name has to satisfy the comparison."""
    semicolons: bool = False
    """Of query parameters: `;` separates them as `&` does (Traefik)."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.any_value and self.subject not in _REPEATED:
            raise ValueError("any_value is for headers and query parameters only")
        if self.semicolons and self.subject is not Subject.QUERY:
            raise ValueError("semicolons is for query parameters only")
        if bool(self.name) != (self.subject in _NAMED):
            raise ValueError(f"a comparison of {self.subject} {'needs a' if not self.name else 'has no'} name")
        if bool(self.values) is (self.operator is Operator.PRESENT):
            raise ValueError(f"operator {self.operator} {'needs' if not self.values else 'takes no'} values")
        return self


class AllOf(Entry):
    """True if every part is; without parts too."""

    all_of: "tuple[Condition, ...]"


class AnyOf(Entry):
    """True if some part is."""

    any_of: "tuple[Condition, ...]"


class Not(Entry):
    """True if its part is not."""

    negated: "Condition"


Condition = Compare | AllOf | AnyOf | Not
