"""What nats-py's client lacks: it insists on TLS, bears a server that has much to say, ends when it is closed, and
explains why it does not connect.
"""

import asyncio
import logging
import ssl
from collections.abc import Sequence
from typing import Any

import nats.errors
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription

from headgate.common.bus.direct import DirectParser, Receive
from headgate.common.bus.encoded import EncodedMessage
from headgate.common.service.tasks import heed_cancellation

_log = logging.getLogger(__name__)


def _is_telling(record: logging.LogRecord) -> bool:
    # nats-py changes a connection to TLS in a way that makes asyncio complain about every one that ends.
    return "eof_received() has no effect when using ssl" not in record.getMessage()


logging.getLogger("asyncio").addFilter(_is_telling)

PARTING_S = 2.0
"""What closing a connection may take: over TLS it waits for a word of the peer, for half a minute by default."""


class Unencrypted(nats.errors.Error):
    """A server that does not ask for TLS, where the settings do."""


class PatientClient(Client):
    """nats-py gives up a connection on which PONG is late, also while it reads what the server sent before it.

    A process with little CPU reads a large log for longer than a few PINGs: whatever comes is a sign of life.
    """

    _heard = 0

    def __init__(self) -> None:
        """Prepare a client; `connect` connects it."""
        super().__init__()
        self._ps = self._parser = DirectParser(self)

    async def subscribe_directly(self, subject: str, receive: Receive) -> Subscription:
        """Subscribe, and have messages given to a function while they are parsed.

        It must be quick, as nothing else is read meanwhile. Nothing is ever dropped for it. What comes before this
        returns is left out.

        Raises:
            nats.errors.Error: what nats-py says.
        """
        subscription = await self.subscribe(subject, cb=_leave_out)
        self._parser.receivers[subscription._id] = receive  # noqa: SLF001 - by which messages name it
        return subscription

    def _remove_sub(self, sid: int, max_msgs: int = 0) -> None:
        self._parser.receivers.pop(sid, None)
        super()._remove_sub(sid, max_msgs)

    async def _process_msg(self, sid: int, subject: bytes, reply: bytes, data: bytes, headers: bytes) -> None:
        receive = self._parser.receivers.get(sid)
        if receive is None:
            await super()._process_msg(sid, subject, reply, data, headers)
        else:
            await self._parser.give(receive, subject, reply, headers or b"", data)

    async def _send_ping(self, future: "asyncio.Future[bool] | None" = None) -> None:
        if self.stats["in_msgs"] != self._heard:
            self._heard = self.stats["in_msgs"]
            self._pings_outstanding = min(1, self._pings_outstanding)
        await super()._send_ping(future)

    async def publish_encoded(self, messages: Sequence[EncodedMessage]) -> None:
        """Publish messages in order, as `publish` does with each, but in one piece.

        Raises:
            nats.errors.Error: none of them is published.
        """
        if self.is_closed:
            raise nats.errors.ConnectionClosedError
        if self.is_draining_pubs:
            raise nats.errors.ConnectionDrainingError
        commands = b"".join([message.command() for message in messages])
        if not self.is_connected and len(commands) + self._pending_data_size > self._max_pending_size:
            raise nats.errors.OutboundBufferLimitError
        self.stats["out_msgs"] += len(messages)
        self.stats["out_bytes"] += sum([len(message.payload) for message in messages])
        await self._send_command(commands)
        if self._flush_queue is not None and self._flush_queue.empty():
            await self._flush_pending()


async def _leave_out(_message: Msg) -> None:
    return


class TlsClient(PatientClient):
    """nats-py leaves it to the server whether there is TLS; this one says nothing to a server that wants none."""

    async def _process_info(self, info: dict[str, Any], initial_connection: bool = False) -> None:
        if initial_connection and not info.get("tls_required"):
            raise Unencrypted("the server does not ask for TLS, and is not trusted without it")
        await super()._process_info(info, initial_connection)


async def close_client(client: Client) -> None:
    """Close a client for good; what hangs is left behind."""
    try:
        async with asyncio.timeout(PARTING_S):
            await heed_cancellation(client.close())
    except (TimeoutError, OSError, nats.errors.Error, AssertionError) as error:
        # AssertionError: nats-py's complaint about a client that never connected.
        _log.debug("closing the NATS client failed", extra={"reason": reason_of(error)})


def explain(error: Exception, user: str) -> tuple[str, str]:
    """Return why an attempt to connect failed, and the kind of the reason: `user`, `tls` or `away`."""
    if isinstance(error, nats.errors.AuthorizationError) or "authorization violation" in str(error).lower():
        return f"the user {user!r} or its password is refused", "user"
    if isinstance(error, ssl.SSLError | Unencrypted):
        return reason_of(error), "tls"
    return reason_of(error), "away"


def reason_of(error: BaseException) -> str:
    """Return what an error says, or its kind if it says nothing."""
    return str(error) or type(error).__name__
