"""What came of a request's body and is still at hand: to be sent, to be sent again, or until all of it is there."""

from headgate.gateway.model.memory_budget import MemoryBudget


class RequestBody:
    """The body of the request under way, as far as it was not passed on."""

    __slots__ = (
        "_buffers",
        "_first",
        "_more",
        "counted",
        "held_limit",
        "is_asked_for",
        "is_held",
        "is_kept",
        "is_replaced",
        "limit",
        "passes_on",
        "received",
        "size",
        "trailers",
    )

    def __init__(self, buffers: MemoryBudget) -> None:
        self._buffers = buffers
        self.counted = 0
        """Bytes at hand that are counted in the worker's budget: those of bodies that wait, be it for their ends."""
        self._first = b""
        self._more: list[bytes] | None = None
        """What came behind that, in pieces: there may be many small ones."""
        self.size = 0
        """Bytes at hand."""
        self.trailers = b""
        self.held_limit = 0
        self.begin()

    def begin(self) -> None:
        """Begin with a request of whose body nothing came yet."""
        self.received = 0
        """Bytes that came, wherever they are."""
        self.limit = -1
        """Longest body that is taken, in bytes; -1: the client's side alone decides."""
        self.is_asked_for = False
        """The client was sent a 100."""
        self.is_held = False
        """It is kept back until all of it is there."""
        self.passes_on = False
        """If it is longer than can be held it is passed on as it comes, and not refused."""
        self.is_kept = True
        """All that was sent of it is at hand, so that it can be sent again."""
        self.is_replaced = False
        """A plugin has made the whole body, and what the client sends of its own is dropped."""

    def start(self, payload: bytes, trailers: bytes) -> None:
        """Take what is there of it when its request is dispatched."""
        self._first = payload
        self.size = self.received = len(payload)
        self.trailers = trailers

    def keep(self, payload: bytes) -> None:
        """Take more of it."""
        if self._more is None:
            self._more = [payload]
        else:
            self._more.append(payload)
        self.size += len(payload)

    def at_hand(self) -> bytes:
        """Return what is at hand; it stays so."""
        if self._more is not None:
            self._first = b"".join((self._first, *self._more))
            self._more = None
        return self._first

    def replace(self, payload: bytes) -> None:
        """Put something else in the place of what is at hand."""
        self._first = payload
        self._more = None
        self.size = len(payload)
        if self.counted:
            self._buffers.change(self.counted, self.size)
            self.counted = self.size

    def drop(self) -> None:
        """Part with what is at hand."""
        self._first = b""
        self._more = None
        self.size = 0
        if self.counted:
            self._buffers.release(self.counted)
            self.counted = 0

    def count(self, owner: str) -> bool:
        """Count what is at hand in the worker's budget; False: there is no room."""
        more = self.size - self.counted
        if more and not self._buffers.take(self.counted, more, owner):
            return False
        self.counted = self.size
        return True

    def hold(self, limit: int, passes_on: bool = False) -> None:
        """Keep all of it back, at most so many bytes."""
        self.is_held = True
        self.passes_on = passes_on
        self.held_limit = limit
