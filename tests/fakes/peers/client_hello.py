"""ClientHellos: what OpenSSL really sends, and parts put together by hand."""

import ssl
from collections.abc import Sequence


def real_hello(server_name: str = "", alpn: Sequence[str] = ()) -> bytes:
    """The bytes that a client of this OpenSSL begins with."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    if alpn:
        context.set_alpn_protocols(list(alpn))
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = context.wrap_bio(incoming, outgoing, server_hostname=server_name or None)
    try:
        client.do_handshake()
    except ssl.SSLWantReadError:
        return outgoing.read()
    raise AssertionError("a client cannot finish alone")


def vector(size: int, body: bytes) -> bytes:
    """Bytes behind their number."""
    return len(body).to_bytes(size, "big") + body


def extension(kind: int, body: bytes) -> bytes:
    return kind.to_bytes(2, "big") + vector(2, body)


def server_name(*names: bytes, kind: int = 0) -> bytes:
    return extension(0, vector(2, b"".join(bytes([kind]) + vector(2, name) for name in names)))


def alpn(*protocols: bytes) -> bytes:
    return extension(16, vector(2, b"".join(vector(1, protocol) for protocol in protocols)))


def message(*extensions: bytes, ciphers: bytes = b"\x13\x01", behind: bytes = b"") -> bytes:
    """A handshake message; without extensions it has not even an empty list of them."""
    body = b"\x03\x03" + bytes(32) + vector(1, b"") + vector(2, ciphers) + vector(1, b"\0")
    if extensions:
        body += vector(2, b"".join(extensions))
    return b"\x01" + vector(3, body + behind)


def records(data: bytes, size: int = 1 << 14) -> bytes:
    """A handshake message cut into records."""
    return b"".join(b"\x16\x03\x01" + vector(2, data[at : at + size]) for at in range(0, len(data), size))
