"""llhttp, through httptools, as the parser of every message on both sides.

It says what the fields are, where a body ends, and what its bytes are. Nothing lenient is set. Checks of our own
(`grammar`, `head`, `framing`) come on top and can only refuse more; where they and llhttp see different ends, the
message is refused too. A parser is fed exactly one message at a time, so that what follows belongs to nobody yet.
"""

import re
from collections.abc import Callable
from typing import Final, cast

import httptools

from headgate.gateway import ENGINE
from headgate.gateway.proxy.errors import FramingError, LimitExceeded
from headgate.gateway.proxy.heads.grammar import fault_of_block

Fields = tuple[tuple[bytes, ...], tuple[bytes, ...]]
"""Names as sent, and values without the white space before them; behind them there may be some."""

_UPGRADE_NAME: Final = re.compile(rb"\r\nupgrade:", re.IGNORECASE)
_COMPILED: Final = ENGINE == "compiled"


class MessageParser:
    """What requests and answers have in common: collects what llhttp calls back with.

    Compiled, it notes each field itself. Interpreted, a call per field would be most of what a head costs, so llhttp
    hands each to a method of a dictionary. A name that comes twice does not fit into a dictionary; such a head, valid
    by then, is cut again.
    """

    __slots__ = ("_fields", "_names", "_parser", "_pieces", "_values", "complete", "on_header")

    def __init__(self) -> None:
        self._fields: dict[bytes, bytes] = {}
        self._names: list[bytes] = []
        self._values: list[bytes] = []
        self.on_header: Callable[[bytes, bytes], object] = self._note_field if _COMPILED else self._fields.setdefault
        """Called by llhttp with the name and the value of a field of the head or the trailers."""
        self.complete = False
        """llhttp has seen the end of the message."""
        self._pieces: list[bytes] = []
        self.renew()

    def _new(self) -> "httptools.HttpRequestParser | httptools.HttpResponseParser":
        raise NotImplementedError

    def renew(self) -> None:
        """Begin with a new llhttp, where the old one waits for something that will not come."""
        self._parser = self._new()

    def head(self, raw: bytes) -> Fields:
        """Feed a whole head, empty line included, and give its fields; raises BadMessage."""
        if _COMPILED:
            self._names = []
            self._values = []
        else:
            self._fields.clear()
        self.complete = False
        try:
            self._parser.feed_data(raw)
        except httptools.HttpParserUpgrade:
            fields = self._collected(raw)
            self._upgrade(raw)
            return fields
        except httptools.HttpParserInvalidMethodError as error:
            raise LimitExceeded("unknown method", 501) from error
        except httptools.HttpParserError as error:
            block = raw[raw.index(b"\n") + 1 : -2]
            raise FramingError(fault_of_block(block) or str(error)) from error
        return self._collected(raw)

    def _collected(self, raw: bytes) -> Fields:
        if _COMPILED:
            return tuple(self._names), tuple(self._values)
        fields = self._fields
        names, values = tuple(fields), tuple(fields.values())
        # Two lines are no fields: the first and the empty one.
        return (names, values) if len(names) + 2 == raw.count(b"\n") else cut_fields(raw[raw.index(b"\n") + 1 : -2])

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

    def _note_field(self, name: bytes, value: bytes) -> None:
        self._names.append(name)
        self._values.append(value)

    def on_body(self, data: bytes) -> None:
        """Take payload."""
        self._pieces.append(data)

    def on_message_complete(self) -> None:
        """Note the end."""
        self.complete = True


def cut_fields(block: bytes) -> Fields:
    """Cut lines that llhttp has accepted (`block`: each with its CRLF) into names and values; raises FramingError."""
    parts = [line.partition(b":") for line in block.split(b"\r\n")[:-1]]
    if not all(colon for _, colon, _ in parts):
        raise FramingError("malformed head")
    return tuple(name for name, _, _ in parts), tuple(value.lstrip(b" \t") for _, _, value in parts)


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
