"""What the directives of one block say, one value for each."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeVar

from headgate.common.plugins.traffic.nginx_rewrite import Step
from headgate.common.table import PathMatch
from headgate.translator.snippets.grammar import Directive

S = TypeVar("S")


@dataclass(frozen=True, slots=True)
class AddedHeader:
    """`add_header`."""

    name: str
    value: str
    always: bool


@dataclass(frozen=True, slots=True)
class HeaderFilter:
    """`more_set_headers` and `more_clear_headers`."""

    removed: tuple[str, ...] = ()
    set: tuple[tuple[str, str], ...] = ()
    statuses: tuple[str, ...] = ()
    """None: all."""
    types: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class InputFilter:
    """`more_set_input_headers` and `more_clear_input_headers`."""

    removed: tuple[str, ...] = ()
    set: tuple[tuple[str, str], ...] = ()
    is_replacing: bool = False
    """Only headers that are there are set (`-r`)."""
    types: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ProxyHeader:
    """`proxy_set_header`."""

    name: str
    value: str


@dataclass(frozen=True, slots=True)
class HiddenHeader:
    """`proxy_hide_header`."""

    name: str


@dataclass(frozen=True, slots=True)
class PassedHeader:
    """`proxy_pass_header`."""

    name: str


@dataclass(frozen=True, slots=True)
class Expires:
    """`expires`."""

    seconds: int | None = None
    """None: `off`, or constants."""
    constants: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class AccessRule:
    """`allow` or `deny`."""

    allows: bool
    network: str


@dataclass(frozen=True, slots=True)
class LimitExcept:
    """`limit_except`."""

    methods: tuple[str, ...]
    rules: tuple[AccessRule, ...]


@dataclass(frozen=True, slots=True)
class Substitution:
    """`sub_filter`."""

    text: str
    replacement: str


@dataclass(frozen=True, slots=True)
class AuthVariable:
    """`auth_request_set`: a variable that gets a header of the answer of the service that is asked."""

    name: str
    header: str


@dataclass(frozen=True, slots=True)
class Setting:
    """A field of the route, or a part of what another directive does: `timeouts.read_s`, `gzip.types`."""

    name: str
    value: object


@dataclass(frozen=True, slots=True)
class UpstreamTlsSetting:
    """`proxy_ssl_name` and the like, or `grpc_ssl_name`: how TLS is spoken with endpoints of one protocol."""

    of_grpc: bool
    name: str
    """A field of `BackendTls`."""
    value: str
    directive: Directive


@dataclass(frozen=True, slots=True)
class Branch:
    """What an `if` block says besides its steps, under the number that its step notes."""

    number: int
    level: "Level"


@dataclass(frozen=True, slots=True)
class Location:
    """A `location` block."""

    path: PathMatch
    modifier: str
    """`=`, `^~`, `~`, `~*`, or none."""
    level: "Level"
    directive: Directive


@dataclass(frozen=True, slots=True)
class NamedLocation:
    """A `location @name` block, which `error_page` refers to."""

    name: str
    steps: tuple[Step, ...]
    default_type: str


@dataclass(frozen=True, slots=True)
class ErrorAnswer:
    """`error_page`."""

    statuses: tuple[int, ...]
    status: int | None
    """As in the plugin's `ErrorPage`."""
    target: str
    """A template of an address, or `@` and the name of a location."""
    directive: Directive


@dataclass(frozen=True, slots=True)
class Program:
    """A directive of the rewrite phase."""

    step: Step


Said = (
    AddedHeader | HeaderFilter | InputFilter | ProxyHeader | HiddenHeader | PassedHeader | Expires | AccessRule
    | LimitExcept | AuthVariable | Substitution | Setting | UpstreamTlsSetting | Branch | Location | NamedLocation
    | ErrorAnswer | Program
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Level:
    """A block."""

    said: tuple[Said, ...] = ()

    def of(self, kind: type[S]) -> tuple[S, ...]:
        """Return what is said of one kind, in its order."""
        return tuple(each for each in self.said if isinstance(each, kind))

    def settings(self) -> dict[str, object]:
        """Return the settings; of two of one name the later."""
        return {each.name: each.value for each in self.of(Setting)}

    @property
    def steps(self) -> tuple[Step, ...]:
        """The program of the rewrite phase."""
        return tuple(each.step for each in self.of(Program))

    def __iter__(self) -> Iterator[Said]:
        return iter(self.said)


NOTHING = Level()
