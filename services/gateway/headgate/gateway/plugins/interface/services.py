"""What the gateway gives to a plugin besides its configuration, and what stands for it where there is none."""

import logging
import time
from collections.abc import Awaitable, Callable, Hashable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar
from weakref import WeakValueDictionary

from headgate.common.table import PathMatch
from headgate.gateway.net.dialling import UNBOUNDED, Dialler
from headgate.gateway.plugins.interface.consumers import ConsumerDirectory, KnownConsumer, KnownCredential
from headgate.gateway.plugins.interface.messages import Request, Response
from headgate.gateway.plugins.interface.targets import Endpoints, NoEndpoints

if TYPE_CHECKING:
    import aiohttp

    from headgate.common.plugins.authentication.openid_session import SessionRedisConfig
    from headgate.common.plugins.limits.counting import CountingConfig
    from headgate.common.stores.redis.values import RedisValues
    from headgate.gateway.counting.peers import Peers
    from headgate.gateway.plugins.redis.counters import SharedCounters
    from headgate.gateway.plugins.redis.links import HeldLink

S = TypeVar("S")


class SharedState:
    """What plugins keep beyond one table: counters and caches.

    A table that changes makes new plugins; these find the state of their predecessors here by its key. The state lives
    as long as some plugin holds it. It belongs to one worker process; `PluginServices.peers` has what others show.
    """

    __slots__ = ("_states",)

    def __init__(self) -> None:
        self._states: WeakValueDictionary[Hashable, Any] = WeakValueDictionary()

    def get(self, key: Hashable, make: Callable[[], S]) -> S:
        """Return what is kept under a key, made now if there is nothing.

        Keys begin with the plugin's name. One that an object can choose has `PluginServices.owner` too.
        """
        state = self._states.get(key)
        if state is None:
            state = make()
            self._states[key] = state
        found: S = state
        return found


class SendTo(Protocol):
    """Sends a request of a plugin's own to an upstream of the table."""

    async def __call__(
        self, upstream: str | Endpoints, request: Request, *, timeout_s: float, max_body: int
    ) -> Response:
        """Send `request` (its body whole, in `body`) to an endpoint of the upstream with this key, or to one of these.

        Returns the answer with its whole body. Raises OSError or TimeoutError if there is none, BodyTooLarge if its
        body has more than `max_body` bytes.
        """


async def no_upstreams(upstream: str | Endpoints, request: Request, *, timeout_s: float, max_body: int) -> Response:
    """Stand for `send_to` where there is no table."""
    raise ConnectionRefusedError(f"there is no upstream {upstream}")


def no_client() -> "aiohttp.ClientSession":
    """Stand for `http` where no requests of a plugin's own are sent."""
    raise ConnectionRefusedError("there is no HTTP client")


def no_counters(config: "CountingConfig") -> "SharedCounters | None":
    """Stand for `find_counters` where nothing is shared."""
    return None


def no_sessions(config: "SessionRedisConfig") -> "HeldLink[RedisValues]":
    """Stand for `find_sessions` where nothing is shared."""
    raise ConnectionRefusedError("there is no connection to Redis")


class Closing(Protocol):
    """What has something to finish before the worker ends."""

    async def close(self) -> None:
        """Finish, in a few seconds at most."""


def no_closing(closing: Closing) -> None:
    """Stand for `close_later` where nothing ends."""


async def no_metrics() -> "Response":
    """Stand for `metrics` where there are none."""
    return Response.refusal(404, "there are no metrics here")


class AnswersFolder(NamedTuple):
    """Where the workers of a gateway keep answers for each other."""

    path: Path
    """With a folder for each worker, by its number."""
    workers: int
    worker: int
    """Number of this one."""


@dataclass(frozen=True, slots=True)
class PluginServices:
    """What the gateway gives to a plugin."""

    scope: str = ""
    """`host|route name` of the route, for state that belongs to it."""
    owner: str = ""
    """`cluster/namespace` of the object that the plugin was written for, which the object itself cannot choose: it
    belongs into the key of whatever routes of several objects may share."""
    gateways: tuple[str, ...] = ()
    """Gateways of the route: consumers of others are not recognised; empty: those of all are."""
    path: PathMatch | None = None
    """The paths that the route takes; None: it is not known, or there is no route."""
    shared: SharedState = field(default_factory=SharedState)
    http: "Callable[[], aiohttp.ClientSession]" = no_client
    """Returns the worker's HTTP client; call it in a hook, on the running event loop."""
    dialler: Dialler = UNBOUNDED
    """Opens connections that are no HTTP to where routes may lead; the HTTP client asks it too."""
    send_to: SendTo = no_upstreams
    find_upstream: Callable[[str], Endpoints] = NoEndpoints
    """Returns where the endpoints of the upstream with this key are found, for `Request.endpoints`; an upstream that
    the table lacks has none. Call it when the plugin is made."""
    find_group: Callable[[str], Endpoints] = NoEndpoints
    """Returns where the endpoints of the group of backends with this key are found, for `send_to`."""
    find_counters: "Callable[[CountingConfig], SharedCounters | None]" = no_counters
    """Returns where a limit counts together with other gateways; None: with the workers of its own."""
    answers: AnswersFolder | None = None
    """Where answers are kept together with other workers of the gateway; None: there are none."""
    peers: "Peers | None" = None
    """Shows other workers of the gateway what is counted here; None: there are none."""
    find_sessions: "Callable[[SessionRedisConfig], HeldLink[RedisValues]]" = no_sessions
    """Returns the connection to a Redis that keeps sessions; hold it as long as it is needed."""
    metrics: Callable[[], Awaitable[Response]] = no_metrics
    """Returns the metrics of this gateway."""
    log_dir: Path | None = None
    """Folder for files of routes' plugins; None: there is none."""
    policy_dir: Path | None = None
    """Folder of files that routes' plugins may read their policies from; None: there is none."""
    hooks: Mapping[str, Callable[..., Any]] = field(default_factory=dict)
    """Functions of the operator's own file, by name."""
    close_later: Callable[[Closing], None] = no_closing
    """Has something closed when the worker ends, if it is still in use then."""
    consumers: ConsumerDirectory = field(default_factory=ConsumerDirectory)
    """Those of the table that is served; plugins ask by `find_credential` and `find_consumer`."""
    clock: Callable[[], float] = time.monotonic
    """Monotonic seconds."""
    logger: logging.Logger = field(default_factory=lambda: logging.getLogger("headgate.gateway.plugins"))

    def find_credential(self, plugin: str, value: bytes) -> KnownCredential | None:
        """Return the credential of a plugin that is found by this value, of a consumer that the route may recognise."""
        return self.consumers.find(plugin, value, self.owner, self.gateways)

    def find_consumer(self, name: str) -> KnownConsumer | None:
        """Return a consumer that the route may recognise by its name."""
        return self.consumers.named(name, self.owner, self.gateways)

    def within(self, name: str) -> "PluginServices":
        """Return the same for a part of the route."""
        return replace(self, scope=f"{self.scope}|{name}")
