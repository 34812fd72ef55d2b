"""The hooks of routes, as the proxy knows them: where it calls out for a request, and nothing more.

The plugins of a route implement this. They are classes, not protocols, for the reason that `sides` gives.
"""

from typing import TYPE_CHECKING

from headgate.gateway.proxy.heads.head import AnswerHead

if TYPE_CHECKING:
    from headgate.gateway.proxy.errors import BodyTooLarge
    from headgate.gateway.proxy.request_source import RequestSource


class HookRun:
    """The hooks of one request. What they change, they change on the exchange that they were begun for."""

    __slots__ = ("is_refused", "original")

    def __init__(self, original: tuple[bytes, bytes, bytes]) -> None:
        self.original = original
        """Method, target and host as they came."""
        self.is_refused = False
        """The gateway has answered by itself."""

    @property
    def is_holding(self) -> bool:
        """The answer waits for a hook, or for its time."""
        raise NotImplementedError

    @property
    def is_waiting(self) -> bool:
        """A hook is being awaited."""
        raise NotImplementedError

    @property
    def has_body(self) -> bool:
        """The hooks have the whole body of the request."""
        raise NotImplementedError

    @property
    def has_answer(self) -> bool:
        """The upstream's answer has come, or the request was answered otherwise."""
        raise NotImplementedError

    def start(self) -> bool:
        """Run the request hooks; False: the request is answered, or goes on by itself later."""
        raise NotImplementedError

    def request_data(self, payload: bytes, *, done: bool) -> bytes | None:
        """Give what goes to the upstream for more of the client's body; None: the request was answered instead."""
        raise NotImplementedError

    def body_read(self, body: bytes) -> None:
        """Take the body that a hook waits for."""
        raise NotImplementedError

    def body_refused(self, fault: "BodyTooLarge") -> bool:
        """Hear why the body that a hook waits for cannot be held; False: none waits."""
        raise NotImplementedError

    def answer(self, answer: AnswerHead, payload: bytes, *, bodiless: bool, done: bool, trailers: bytes) -> None:
        """Take the head of the upstream's answer, with what is there of its body."""
        raise NotImplementedError

    def answer_data(self, payload: bytes, *, done: bool, trailers: bytes) -> None:
        """Take more of the answer's body."""
        raise NotImplementedError

    def own_answer(self, answer: AnswerHead, body: bytes) -> None:
        """Take an answer of the gateway's own."""
        raise NotImplementedError

    def finish(self, status: int, duration_s: float) -> None:
        """Hear that the request is over, and give the exchange back what the client sent, for the log."""
        raise NotImplementedError


class RequestHooks:
    """The hooks of a route."""

    __slots__ = ()

    def begin(self, request: "RequestSource") -> HookRun | None:
        """Begin with a request, the `Exchange` that it is served by; None: no hook has to do with it."""
        raise NotImplementedError
