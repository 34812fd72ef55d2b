"""llhttp, through httptools, as the parser of every message on both sides.

It says whether a head is one, where a body ends, and what its bytes are. Nothing lenient is set. Checks of our own
(`grammar`, `reading`, `framing`) come on top and can only refuse more; where they and llhttp see different ends, the
message is refused too. A parser is fed exactly one message at a time, so that what follows belongs to nobody yet.

llhttp is not asked for the fields of a head: a call for each would be most of what the head costs. Lines that it has
accepted have one reading, so they are cut once more (`reading`).
"""

import re
from typing import Final, cast

import httptools

from headgate.gateway.proxy.errors import FramingError, LimitExceeded
from headgate.gateway.proxy.heads.grammar import fault_of_block

_UPGRADE_NAME: Final = re.compile(rb"\r\nupgrade:", re.IGNORECASE)


class MessageParser:
    """What requests and answers have in common: collects what llhttp calls back with."""

    __slots__ = ("_parser", "_pieces", "complete")

    def __init__(self) -> None:
        self.complete = False
        """llhttp has seen the end of the message."""
        self._pieces: list[bytes] = []
        self.renew()

    def _new(self) -> "httptools.HttpRequestParser | httptools.HttpResponseParser":
        raise NotImplementedError

    def renew(self) -> None:
        """Begin with a new llhttp, where the old one waits for something that will not come."""
        self._parser = self._new()

    def head(self, raw: bytes) -> None:
        """Feed a whole head, empty line included; raises BadMessage."""
        self.complete = False
        try:
            self._parser.feed_data(raw)
        except httptools.HttpParserUpgrade:
            self._upgrade(raw)
        except httptools.HttpParserInvalidMethodError as error:
            raise LimitExceeded("unknown method", 501) from error
        except httptools.HttpParserError as error:
            block = raw[raw.index(b"\n") + 1 : -2]
            raise FramingError(fault_of_block(block) or str(error)) from error

    def body(self, data: bytes) -> bytes:
        """Feed bytes of a body, in its coding, and give the payload in them; raises FramingError."""
        if not data:
            return b""
        pieces = self._pieces = []
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as error:
            raise FramingError(str(error)) from error
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def close(self) -> None:
        """Part with llhttp, which holds methods of this object, so that nothing waits for the collector of cycles."""
        self._parser = cast("httptools.HttpRequestParser", None)

    def _upgrade(self, raw: bytes) -> None:
        raise NotImplementedError

    # Called by llhttp

    def on_body(self, data: bytes) -> None:
        """Take payload."""
        self._pieces.append(data)

    def on_message_complete(self) -> None:
        """Note the end."""
        self.complete = True


class RequestParser(MessageParser):
    """Parses the requests of one client connection."""

    __slots__ = ()

    def _new(self) -> "httptools.HttpRequestParser":
        return httptools.HttpRequestParser(self)

    def _upgrade(self, raw: bytes) -> None:
        """Frame a request that offers an upgrade as the ordinary request that it is without one.

        llhttp takes what follows such a head for another protocol. We never switch on a client's word, so the body is
        framed by a llhttp that was not shown the offer. CONNECT has no body and is refused.
        """
        self.renew()
        self.complete = raw.startswith(b"CONNECT ")
        if not self.complete:
            try:
                self._parser.feed_data(_UPGRADE_NAME.sub(b"\r\nX-Upgrade:", raw))
            except (httptools.HttpParserError, httptools.HttpParserUpgrade) as error:
                raise FramingError(str(error)) from error


class AnswerParser(MessageParser):
    """Parses the answers on one upstream connection."""

    __slots__ = ()

    def _new(self) -> "httptools.HttpResponseParser":
        return httptools.HttpResponseParser(self)

    def _upgrade(self, raw: bytes) -> None:
        """Let a switch of protocols through; whether it was asked for is known where answers are read."""
