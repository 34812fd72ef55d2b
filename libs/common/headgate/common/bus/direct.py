"""Messages given to a function as they are parsed, for those who read a stream of hundreds of thousands.

nats-py makes an object of each message, reads its headers, puts it into a queue and has a task take it out again. That
is 20 us of processor time for a delta more than this. What is no message of such a subscription, or has not arrived as
a whole, is left to nats-py's own parser, so it stays right about reconnecting, errors and PINGs.

Rejected: a parser of the whole protocol. The part that it would make faster is next to nothing of what is read.
"""

from collections.abc import Callable
from typing import Any

from nats.protocol.parser import (
    AWAITING_MSG_PAYLOAD,
    CRLF_SIZE,
    HMSG_OP,
    MAX_CONTROL_LINE_SIZE,
    MSG_OP,
    Parser,
)

Receive = Callable[[str, str, bytes, bytes], None]
"""Takes subject, reply subject, headers (for `decode_headers`) and payload of a message."""
_CRLF = b"\r\n"


class DirectParser(Parser):
    """nats-py's parser, which gives messages of some subscriptions to functions."""

    def __init__(self, client: Any) -> None:
        """Parse what a client reads."""
        super().__init__(client)
        self.receivers: dict[int, Receive] = {}
        """By the id of the subscription."""

    async def parse(self, data: bytes = b"") -> None:
        """Parse what was read next."""
        if self.receivers and self.state == AWAITING_MSG_PAYLOAD:
            missing = self.needed + CRLF_SIZE - len(self.buf)
            await super().parse(data[:missing])
            data = data[missing:]
        elif self.receivers and self.buf:
            data = bytes(self.buf) + data
            self.buf.clear()
        if self.receivers:
            data = data[await self._give_all(data) :]
        if data:
            await super().parse(data)

    async def _give_all(self, data: bytes) -> int:
        """Give away the messages at the beginning of what was read; return where something else begins."""
        at = 0
        while (end := data.find(_CRLF, at, at + MAX_CONTROL_LINE_SIZE)) >= 0:
            line = data[at:end].split()
            if not line or line[0] not in (MSG_OP, HMSG_OP):
                break
            has_headers = line[0] == HMSG_OP
            try:
                receive = self.receivers.get(int(line[2]))
                start, stop = end + CRLF_SIZE, end + CRLF_SIZE + int(line[-1])
                body = start + int(line[-2]) if has_headers else start
            except (IndexError, ValueError):
                break  # nats-py complains
            if receive is None or len(data) < stop + CRLF_SIZE:
                break
            reply = line[3] if len(line) == 5 + has_headers else b""
            await self.give(receive, line[1], reply, data[start:body], data[body:stop])
            at = stop + CRLF_SIZE
        return at

    async def give(self, receive: Receive, subject: bytes, reply: bytes, headers: bytes, payload: bytes) -> None:
        """Call the receiver with one message. If it raises, call the client's error callback, as nats-py does."""
        self.nc.stats["in_msgs"] += 1
        self.nc.stats["in_bytes"] += len(payload)
        try:
            receive(subject.decode(), reply.decode(), headers, payload)
        except Exception as error:
            await self.nc._error_cb(error)  # noqa: SLF001 - where nats-py itself tells it
