"""llhttp, through httptools, as the parser of every message on both sides.

It says what the fields are, where a body ends, and what its bytes are. Nothing lenient is set. Checks of our own
(`grammar`, `head`, `framing`) come on top and can only refuse more; where they and llhttp see different ends, the
message is refused too. A parser is fed exactly one message at a time, so that what follows belongs to nobody yet.
"""

import re

import httptools

from headgate.gateway.proxy.errors import FramingError, LimitExceeded
from headgate.gateway.proxy.grammar import fault_of_block

Fields = list[tuple[bytes, bytes]]

_UPGRADE_NAME = re.compile(rb"\r\nupgrade:", re.IGNORECASE)


class _Framing:
    """Callbacks of a llhttp that is asked for framing and payload only.

    A callback per field is most of what a head costs in llhttp. A head that equals the one before it has the same
    fields: it is parsed and validated as any other, without telling of them again.
    """

    __slots__ = ("_message",)

    def __init__(self, message: "MessageParser") -> None:
        self._message = message

    def on_body(self, data: bytes) -> None:
        """Take payload."""
        self._message.on_body(data)

    def on_message_complete(self) -> None:
        """Note the end."""
        self._message.complete = True


class MessageParser:
    """What requests and answers have in common: collects what llhttp calls back with."""

    __slots__ = ("_current", "_framing", "_parser", "_pieces", "complete", "fields")

    def __init__(self) -> None:
        self.fields: Fields = []
        """Fields of the head, or of the trailers once a body is read."""
        self.complete = False
        """llhttp has seen the end of the message."""
        self._pieces: list[bytes] = []
        self.renew()

    def _new(
        self, callbacks: "MessageParser | _Framing"
    ) -> "httptools.HttpRequestParser | httptools.HttpResponseParser":
        raise NotImplementedError

    def renew(self) -> None:
        """Begin with a new llhttp, where the old one waits for something that will not come."""
        self._parser = self._current = self._new(self)
        self._framing = self._new(_Framing(self))

    def head(self, raw: bytes, *, known: bool = False) -> Fields:
        """Feed a whole head, empty line included; raises BadMessage.

        With `known` the fields are not collected, as the caller has those of an equal head.
        """
        fields: Fields = []
        self.fields = fields
        self.complete = False
        self._current = parser = self._framing if known else self._parser
        try:
            parser.feed_data(raw)
        except httptools.HttpParserUpgrade:
            self._upgrade(raw)
        except httptools.HttpParserInvalidMethodError as error:
            raise LimitExceeded("unknown method", 501) from error
        except httptools.HttpParserError as error:
            block = raw[raw.index(b"\n") + 1 : -2]
            raise FramingError(fault_of_block(block) or str(error)) from error
        return fields

    def body(self, data: bytes) -> bytes:
        """Feed bytes of a body, in its coding, and give the payload in them; raises FramingError."""
        if not data:
            return b""
        pieces = self._pieces = []
        try:
            self._current.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as error:
            raise FramingError(str(error)) from error
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def close(self) -> None:
        """Part with llhttp, which holds methods of this object, so that nothing waits for the collector of cycles."""
        del self._parser, self._framing, self._current

    def _upgrade(self, raw: bytes) -> None:
        raise FramingError("unexpected switch of protocols")

    # Called by llhttp

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take a field of the head or the trailers."""
        self.fields.append((name, value))

    def on_body(self, data: bytes) -> None:
        """Take payload."""
        self._pieces.append(data)

    def on_message_complete(self) -> None:
        """Note the end."""
        self.complete = True


class RequestParser(MessageParser):
    """Parses the requests of one client connection."""

    __slots__ = ()

    def _new(self, callbacks: "MessageParser | _Framing") -> "httptools.HttpRequestParser":
        return httptools.HttpRequestParser(callbacks)

    def _upgrade(self, raw: bytes) -> None:
        """Frame a request that offers an upgrade as the ordinary request that it is without one.

        llhttp takes what follows such a head for another protocol. We never switch on a client's word, so the body is
        framed by a llhttp that was not shown the offer. CONNECT has no body and is refused.
        """
        fields = self.fields
        self.renew()
        self.complete = True
        if not raw.startswith(b"CONNECT "):
            self.complete = False
            self.fields = []
            try:
                self._parser.feed_data(_UPGRADE_NAME.sub(b"\r\nX-Upgrade:", raw))
            except (httptools.HttpParserError, httptools.HttpParserUpgrade) as error:
                raise FramingError(str(error)) from error
        self.fields = fields


class AnswerParser(MessageParser):
    """Parses the answers on one upstream connection."""

    __slots__ = ()

    def _new(self, callbacks: "MessageParser | _Framing") -> "httptools.HttpResponseParser":
        return httptools.HttpResponseParser(callbacks)
