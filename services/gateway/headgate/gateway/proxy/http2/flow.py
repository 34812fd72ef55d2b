"""One stream of an HTTP/2 connection, as far as both ends of it are concerned."""

from headgate.gateway.proxy.exchange.pace import Pace
from headgate.gateway.proxy.http2.frames import STREAM_WINDOW


class Flow:
    """Both directions of one stream: windows, what it has yet to send, what it has yet to give back of its window."""

    __slots__ = (
        "drops_rest",
        "ended",
        "has_head",
        "is_over",
        "offset",
        "pace",
        "peer_done",
        "pieces",
        "room",
        "size",
        "trailers",
        "unreturned",
        "window",
    )

    def __init__(self, window: int) -> None:
        self.window = window
        """Bytes that the peer takes; below 0 when it has made its window smaller."""
        self.room = STREAM_WINDOW
        """Bytes that the peer may send."""
        self.peer_done = False
        """The peer has sent its END_STREAM."""
        self.has_head = False
        """The final head of an answer is here."""
        self.pieces: list[bytes] = []
        self.offset = 0
        """What of the first piece was sent."""
        self.size = 0
        self.trailers = b""
        """As header lines."""
        self.ended = False
        """Nothing more will be added."""
        self.is_over = False
        """The end was sent, or the stream was reset."""
        self.unreturned = 0
        """Bytes received and passed on, for which the window was not opened again yet."""
        self.pace: Pace | None = None
        """At which the peer takes the rest of an answer that is given; None: it was not looked at yet."""
        self.drops_rest = False
        """Whatever the peer may still send is not wanted."""
