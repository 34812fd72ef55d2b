"""What a plugin is, and what it is given. `docs/plugins.md` teaches it; third-party plugins import from here only.

A plugin is made once for each use in a route, when the table is compiled, and serves many requests at once; shareable
ones once for all routes whose plugins are the same. Its hooks are called on the event loop: they must not block. A hook
that returns a value costs no task; one that returns an awaitable (an `async def`) makes that request, and no other,
wait for it.

Request hooks run by `order`, greater first; response hooks and filters run the other way round, so that a plugin wraps
those behind it. Response hooks see every answer, those of other plugins and of the gateway itself too, also where an
earlier plugin answered before their own request hook was reached.
"""

import logging
import time
from collections.abc import Awaitable, Callable, Hashable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Literal, NamedTuple, Protocol, TypeVar
from weakref import WeakValueDictionary

from headgate.common.plugins.config import PluginConfig, SecretText
from headgate.common.plugins.fields import BadHeader, HeaderName, HeaderValue, is_reserved
from headgate.common.secret import Secret
from headgate.common.table import PathMatch
from headgate.gateway.dialling import UNBOUNDED, Dialler
from headgate.gateway.plugins.consumers import ConsumerDirectory, KnownConsumer, KnownCredential, attach
from headgate.gateway.plugins.errors import Unforeseeable
from headgate.gateway.plugins.headers import Headers
from headgate.gateway.plugins.messages import BodySource, BodyTooLarge, BuffersFull, Pacing, Request, Response
from headgate.gateway.plugins.targets import Endpoints, NoEndpoints

if TYPE_CHECKING:
    import aiohttp

    from headgate.common.plugins.counting import CountingConfig
    from headgate.common.plugins.openid_session import SessionRedisConfig
    from headgate.common.stores.redis.values import RedisValues
    from headgate.gateway.plugins.shared_counts import SharedCounters
    from headgate.gateway.plugins.shared_links import Held


class BodyFilter:
    """Changes a body as it passes; made for one message."""

    keeps_length: bool = False
    """True for one that gives as many bytes as it takes: the length that was announced stays then."""

    def feed(self, data: bytes) -> bytes:
        """Return what goes out for bytes that came in; may be empty while the filter collects."""
        return data

    def take_trailers(self, trailers: Headers) -> None:
        """Look at the trailers behind an answer's body, before `finish`; what is removed does not go out."""

    def finish(self) -> bytes:
        """Return what is left once the body has ended."""
        return b""


C = TypeVar("C", bound=PluginConfig)
S = TypeVar("S")


class SharedState:
    """What plugins keep beyond one table: counters and caches.

    A table that changes makes new plugins; these find the state of their predecessors here by its key. The state lives
    as long as some plugin holds it. It belongs to one worker process: a limit counts what this worker sees.
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

    async def __call__(self, upstream: str, request: Request, *, timeout_s: float, max_body: int) -> Response:
        """Send `request` (its body whole, in `body`) to an endpoint of the upstream with this key.

        Returns the answer with its whole body. Raises OSError or TimeoutError if there is none, BodyTooLarge if its
        body has more than `max_body` bytes.
        """


async def no_upstreams(upstream: str, request: Request, *, timeout_s: float, max_body: int) -> Response:
    """Stand for `send_to` where there is no table."""
    raise ConnectionRefusedError(f"there is no upstream {upstream}")


def no_client() -> "aiohttp.ClientSession":
    """Stand for `http` where no requests of a plugin's own are sent."""
    raise ConnectionRefusedError("there is no HTTP client")


def no_counters(config: "CountingConfig") -> "SharedCounters | None":
    """Stand for `find_counters` where nothing is shared."""
    return None


def no_sessions(config: "SessionRedisConfig") -> "Held[RedisValues]":
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


@dataclass(frozen=True, slots=True)
class PluginServices:
    """What the gateway gives to a plugin."""

    scope: str = ""
    """`host|route name` of the route, for state that belongs to it."""
    owner: str = ""
    """`cluster/namespace` of the object that the plugin was written for, which the object itself cannot choose: it
    belongs into the key of whatever routes of several objects may share."""
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
    find_counters: "Callable[[CountingConfig], SharedCounters | None]" = no_counters
    """Returns where a limit counts together with other gateways; None: it counts by itself."""
    find_sessions: "Callable[[SessionRedisConfig], Held[RedisValues]]" = no_sessions
    """Returns the connection to a Redis that keeps sessions; hold it as long as it is needed."""
    metrics: Callable[[], Awaitable[Response]] = no_metrics
    """Returns the metrics of this gateway."""
    log_dir: Path | None = None
    """Folder for files of routes' plugins; None: there is none."""
    policy_dir: Path | None = None
    """Folder of files that routes' plugins may read their policies from; None: there is none."""
    close_later: Callable[[Closing], None] = no_closing
    """Has something closed when the worker ends, if it is still in use then."""
    consumers: ConsumerDirectory = field(default_factory=ConsumerDirectory)
    """Those of the table that is served; plugins ask by `find_credential` and `find_consumer`."""
    clock: Callable[[], float] = time.monotonic
    """Monotonic seconds."""
    logger: logging.Logger = field(default_factory=lambda: logging.getLogger("headgate.gateway.plugins"))

    def find_credential(self, plugin: str, value: bytes) -> KnownCredential | None:
        """Return the credential of a plugin that is found by this value, of a consumer that the route may recognise."""
        return self.consumers.find(plugin, value, self.owner)

    def find_consumer(self, name: str) -> KnownConsumer | None:
        """Return a consumer that the route may recognise by its name."""
        return self.consumers.named(name, self.owner)

    def within(self, name: str) -> "PluginServices":
        """Return the same for a part of the route."""
        return replace(self, scope=f"{self.scope}|{name}")


class Passes(NamedTuple):
    """A plugin lets a request pass, and what is to be said of that."""

    detail: str


Foreseen = Response | Passes | None
"""The answer of a plugin; if it has none, perhaps what it does besides."""


class Plugin(Generic[C]):
    """Base of all plugins. Override the hooks that you need; those that you leave cost nothing."""

    name: ClassVar[str]
    """In routes: `cors`."""
    order: ClassVar[int] = 0
    """Greater runs earlier on requests and later on responses; built-in ones have the numbers of Apache APISIX."""
    answer_order: ClassVar[int | None] = None
    """Instead of `order` on responses, where the smaller is earlier."""
    Config: ClassVar[type[PluginConfig]] = PluginConfig
    finds_consumer: bool = False
    """True for one that recognises consumers: it sets `request.consumer`. Plugins of consumers come behind it."""
    waits_for_consumer: bool = False
    """True for one that runs behind those that recognise consumers, whatever its order, so that a consumer's own one
    stands in its place."""
    decides_by_consumer: ClassVar[bool] = False
    """True for one that has no verdict for `explain` where the consumer is not known."""
    preview: ClassVar[Literal["no", "yes", "with-client", "passes"]] = "no"
    """`yes` for one whose `on_request` decides by the request, the configuration and consumers alone, waits for nothing
    but the body and changes nothing but the request: `headgate explain` asks it, by `foresee`. `with-client`: it needs
    an address, too. `passes`: it refuses nothing."""
    unforeseen: ClassVar[str] = "asks a server, counts or draws by chance"
    """Why `explain` cannot ask it, where `preview` is `no`."""
    is_shareable: ClassVar[bool] = False
    """True for one of which routes that tell it the same may share one object: it keeps nothing of a route, and asks
    for none of `scope`, `owner` and `path`."""
    is_of_owner: ClassVar[bool] = False
    """True for one that asks for `owner` all the same, or for consumers: only routes of one owner share it."""

    def __init__(self, config: C, services: PluginServices) -> None:
        self.config = config
        self.services = services

    def on_request(self, request: Request) -> Response | Awaitable[Response | None] | None:
        """Look at a request before its upstream is chosen; change it, or answer it by returning a response."""
        return None

    def foresee(self, request: Request) -> "Foreseen | Awaitable[Foreseen]":
        """Say without side effects what `on_request` does with a request that is not sent.

        Raises:
            Unforeseeable: that cannot be said; the text says why.
        """
        if self.preview == "no":
            raise Unforeseeable(self.unforeseen)
        return self.on_request(request)

    def on_response(self, request: Request, response: Response) -> Awaitable[None] | None:
        """Look at an answer's head before the client gets it; change it. Its body may still be streaming."""
        return None

    def request_body_filter(self, request: Request) -> BodyFilter | None:
        """Give a filter for the body on its way to the upstream; called after all request hooks."""
        return None

    def body_filter(self, request: Request, response: Response) -> BodyFilter | None:
        """Give a filter for the answer's body; called after all response hooks, and may still change headers.

        Not called for answers that have no body (HEAD, 204, 304).
        """
        return None

    def on_finish(self, request: Request, status: int, seconds: float) -> None:
        """Note the end of a request, however it ended; called once. `status` is 499 if the client left before."""


__all__ = [
    "BadHeader",
    "BodyFilter",
    "BodySource",
    "BodyTooLarge",
    "BuffersFull",
    "ConsumerDirectory",
    "HeaderName",
    "HeaderValue",
    "Headers",
    "KnownConsumer",
    "Pacing",
    "PathMatch",
    "Plugin",
    "PluginConfig",
    "PluginServices",
    "Request",
    "Response",
    "Secret",
    "SecretText",
    "SendTo",
    "SharedState",
    "attach",
    "is_reserved",
]
