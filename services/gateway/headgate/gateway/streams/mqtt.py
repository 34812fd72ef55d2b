"""The client id that an MQTT client gives, read from its CONNECT packet.

MQTT 3.1.1 and 5.0, sections 1.5, 2.1 and 3.1 of both. What comes before the client id is checked; properties, and what
comes behind it - will, user name, password - are the server's business, and are not waited for.

Rejected: the packages for MQTT. Clients (`paho-mqtt`, `gmqtt`) write CONNECT and do not read it; `amqtt`, a broker,
reads it from a stream of its own, and brings eight packages along.
"""

from typing import Final

from headgate.common.table import MqttConnect
from headgate.gateway.errors import GatewayError

MAX_CONNECT: Final = 16 * 1024
"""Bytes up to the end of the client id."""
_CONNECT: Final = b"\x10"
"""Type 1, and the flags that it has to have."""
_WITH_PROPERTIES: Final = 5
"""Level of MQTT 5."""
_RESERVED: Final = 0b0000_0001
_WILL: Final = 0b0000_0100
_WILL_QOS: Final = 0b0001_1000
_WILL_RETAIN: Final = 0b0010_0000
_PASSWORD: Final = 0b0100_0000
_USER_NAME: Final = 0b1000_0000


class NotMqtt(GatewayError):
    """A connection that does not begin as its route asks; the text says what is wrong, and shows nothing that came."""


def read_client_id(data: bytes | bytearray, expected: MqttConnect) -> bytes | None:
    """Return the client id, UTF-8 and perhaps empty; None: more bytes have to come.

    Args:
        data: what the connection begins with.
        expected: the protocol's name and level.

    Raises:
        NotMqtt: it begins with something else.
    """
    fields = _Fields(data)
    try:
        if fields.take(1) != _CONNECT:
            raise NotMqtt("it does not begin with a CONNECT packet")
        fields.end_after(fields.number())
        name = expected.protocol_name.encode()
        if fields.short() != len(name) or fields.take(len(name)) != name:
            raise NotMqtt(f"the name of its protocol is not {expected.protocol_name}")
        level = fields.take(1)[0]
        if level != expected.protocol_level:
            raise NotMqtt(f"its protocol level is {level}, not {expected.protocol_level}")
        _check_flags(fields.take(1)[0], level)
        fields.take(2)  # keep alive
        if level == _WITH_PROPERTIES:
            fields.take(fields.number())
        client_id = fields.take(fields.short())
    except _Incomplete:
        return None
    _check_text(client_id)
    return client_id


class _Incomplete(Exception):
    """The packet goes on behind what has come."""


class _Fields:
    """Bytes read from the front, up to the packet's end."""

    __slots__ = ("_at", "_data", "_end")

    def __init__(self, data: bytes | bytearray) -> None:
        self._data = data
        self._at = 0
        self._end: int | None = None

    def end_after(self, size: int) -> None:
        """Let the packet end after so many bytes more."""
        self._end = self._at + size

    def take(self, size: int) -> bytes:
        end = self._at + size
        if self._end is not None and end > self._end:
            raise NotMqtt("a field goes beyond the end of its CONNECT packet")
        if end > MAX_CONNECT:
            raise NotMqtt(f"the client id in its CONNECT packet does not end within {MAX_CONNECT} bytes")
        if end > len(self._data):
            raise _Incomplete
        taken = bytes(self._data[self._at : end])
        self._at = end
        return taken

    def short(self) -> int:
        """Read two bytes."""
        return int.from_bytes(self.take(2), "big")

    def number(self) -> int:
        """Read a variable byte integer: seven bits in each byte, the lowest first, in as few bytes as it takes."""
        number = 0
        for shift in (0, 7, 14, 21):
            byte = self.take(1)[0]
            number |= (byte & 0x7F) << shift
            if byte < 0x80:
                if not byte and shift:
                    break
                return number
        raise NotMqtt("a length in its CONNECT packet is malformed")


def _check_flags(flags: int, level: int) -> None:
    qos = flags & _WILL_QOS
    if (
        flags & _RESERVED
        or qos == _WILL_QOS
        or (not flags & _WILL and (qos or flags & _WILL_RETAIN))
        or (level < _WITH_PROPERTIES and flags & _PASSWORD and not flags & _USER_NAME)
    ):
        raise NotMqtt("the flags in its CONNECT packet are not allowed")


def _check_text(client_id: bytes) -> None:
    try:
        is_allowed = "\0" not in client_id.decode()
    except UnicodeDecodeError:
        is_allowed = False
    if not is_allowed:
        raise NotMqtt("the client id in its CONNECT packet is no text")
