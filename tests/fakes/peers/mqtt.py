"""CONNECT packets of MQTT clients, written field by field."""


def variable(number: int) -> bytes:
    """Write a variable byte integer."""
    low, rest = number & 0x7F, number >> 7
    return bytes([low | 0x80]) + variable(rest) if rest else bytes([low])


def text(value: bytes) -> bytes:
    """Write a string with its length before it."""
    return len(value).to_bytes(2, "big") + value


def connect(
    client_id: bytes = b"sensor-1",
    *,
    level: int = 4,
    name: bytes = b"MQTT",
    flags: int = 2,
    properties: bytes = b"",
    payload: bytes = b"",
) -> bytes:
    """Write a packet that asks for a clean session; `payload` is what comes behind the client id."""
    body = text(name) + bytes([level, flags, 0, 60])
    if level == 5:
        body += variable(len(properties)) + properties
    body += text(client_id) + payload
    return b"\x10" + variable(len(body)) + body
