"""The base of all plugins, and of the filters of bodies that they make."""

from collections.abc import Awaitable
from typing import ClassVar, Generic, Literal, NamedTuple, TypeVar

from headgate.common.plugins.config import PluginConfig
from headgate.gateway.plugins.interface.errors import Unforeseeable
from headgate.gateway.plugins.interface.headers import Headers
from headgate.gateway.plugins.interface.messages import Request, Response
from headgate.gateway.plugins.interface.services import PluginServices

C = TypeVar("C", bound=PluginConfig)


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

    is_nested: bool = False
    """True for one that does not see answers of plugins before it; a use in a route says so."""

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
