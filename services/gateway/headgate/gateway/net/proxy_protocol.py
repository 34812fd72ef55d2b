"""The PROXY protocol, versions 1 and 2: who the client is, said ahead of a connection's first byte, or of a datagram.

https://www.haproxy.org/download/3.0/doc/proxy-protocol.txt; section numbers below are its own. Reading is strict: a
connection that has to begin with a header and begins with something else is not served, as the specification demands.

The specification has families for datagrams and does not say which datagrams have a header. Here each one has, as with
dnsdist, BIND, Unbound and go-mmproxy: any other may be lost or overtaken.
"""

import re
import socket
import struct
from ipaddress import IPv4Address, IPv6Address
from typing import Final, Literal, NamedTuple

from headgate.gateway.errors import GatewayError

MAX_HEADER: Final = 4096
"""Bytes of the longest header that is read. Section 2.2 asks for 232 without TLVs; load balancers add some hundred."""
_V1_LIMIT: Final = 107
"""Bytes of the longest header of version 1, its CRLF included (section 2.1)."""
_V1_START: Final = b"PROXY "
_V1_PORT: Final = re.compile(r"0|[1-9][0-9]{0,4}")
_SIGNATURE: Final = b"\r\n\r\n\x00\r\nQUIT\n"
_V2_HEAD: Final = struct.Struct(">12sBBH")
_TCP4: Final = 0x11
_TCP6: Final = 0x21
_UDP4: Final = 0x12
_UDP6: Final = 0x22
_FAMILIES: Final = frozenset({0x00, _TCP4, _UDP4, _TCP6, _UDP6, 0x31, 0x32})
_MIN_SIZES: Final = {_TCP4: 12, _UDP4: 12, _TCP6: 36, _UDP6: 36, 0x31: 216, 0x32: 216}
_LOCAL: Final = 0x20
_PROXY: Final = 0x21

SocketAddress = tuple[str, int]
"""IP address and port."""


class BadProxyHeader(GatewayError):
    """Bytes that are not the beginning of a PROXY protocol header, or of one that is longer than allowed."""


class Addresses(NamedTuple):
    """The two ends of a client's connection or session. Both are of one family once they come from a header."""

    source: SocketAddress
    """The client."""
    destination: SocketAddress
    """Where the client connected to."""


class ProxyHeader(NamedTuple):
    """A header that was read."""

    size: int
    """Bytes that it takes; what follows them is the connection's or the datagram's own."""
    addresses: Addresses | None
    """None: the header leaves those of the connection in force (`LOCAL`, `UNKNOWN`, families of other transports)."""


def read_proxy_header(data: bytes) -> ProxyHeader | None:
    """Read the header that a connection begins with; None: it may become one with more bytes.

    Raises:
        BadProxyHeader: it is none, whatever follows.
    """
    if data.startswith(_SIGNATURE) or (data and _SIGNATURE.startswith(data)):
        return _read_v2(data)
    if data.startswith(_V1_START) or _V1_START.startswith(data):
        return _read_v1(data)
    raise BadProxyHeader("a PROXY protocol header is expected")


def read_datagram_header(data: bytes) -> ProxyHeader:
    """Read the header that a datagram begins with, of version 2.

    Raises:
        BadProxyHeader: there is none, it is cut, or it is about a connection.
    """
    if not data.startswith(_SIGNATURE):
        raise BadProxyHeader("a PROXY protocol header of version 2 is expected")
    header = _read_v2(data, _UDP4, _UDP6)
    if header is None:
        raise BadProxyHeader("a header that is cut")
    if header.addresses is None and data[len(_SIGNATURE)] == _PROXY and data[len(_SIGNATURE) + 1]:
        raise BadProxyHeader("a header that is not about datagrams")
    return header


def _read_v1(data: bytes) -> ProxyHeader | None:
    end = data.find(b"\r\n", 0, _V1_LIMIT)
    if end < 0:
        if len(data) >= _V1_LIMIT:
            raise BadProxyHeader(f"a version 1 header longer than {_V1_LIMIT} bytes")
        return None
    if not data[:end].isascii():
        raise BadProxyHeader("a version 1 header that is not ASCII")
    _, family, *fields = data[:end].decode().split(" ")
    if family == "UNKNOWN":
        return ProxyHeader(end + 2, None)
    if family not in ("TCP4", "TCP6") or len(fields) != 4:
        raise BadProxyHeader("a version 1 header that is not `PROXY TCP4|TCP6 source destination port port`")
    parse = IPv4Address if family == "TCP4" else IPv6Address
    source, destination = (_v1_address(parse, text) for text in fields[:2])
    ports = [_v1_port(text) for text in fields[2:]]
    return ProxyHeader(end + 2, Addresses((source, ports[0]), (destination, ports[1])))


def _v1_address(parse: type[IPv4Address] | type[IPv6Address], text: str) -> str:
    try:
        if "%" in text:
            raise ValueError("a scope")
        return _text(parse(text).packed)
    except ValueError as error:
        raise BadProxyHeader(f"{text!r} is not an address of the family that the header names") from error


def _v1_port(text: str) -> int:
    if not _V1_PORT.fullmatch(text) or int(text) > 65535:
        raise BadProxyHeader(f"{text!r} is not a port")
    return int(text)


def _read_v2(data: bytes, ipv4: int = _TCP4, ipv6: int = _TCP6) -> ProxyHeader | None:
    if len(data) < _V2_HEAD.size:
        return None
    _, command, family, size = _V2_HEAD.unpack_from(data)
    if command not in (_LOCAL, _PROXY):
        raise BadProxyHeader(f"version and command {command:#x} are neither LOCAL nor PROXY of version 2")
    end = _V2_HEAD.size + size
    if end > MAX_HEADER:
        raise BadProxyHeader(f"a header of {end} bytes; {MAX_HEADER} are read")
    if command == _LOCAL:
        return ProxyHeader(end, None) if len(data) >= end else None
    if family not in _FAMILIES or size < _MIN_SIZES.get(family, 0):
        raise BadProxyHeader(f"family and transport {family:#x} with {size} bytes of addresses")
    if len(data) < end:
        return None
    _check_tlvs(data[_V2_HEAD.size + _MIN_SIZES.get(family, size) : end])
    return ProxyHeader(end, _v2_addresses(data, is_ipv6=family == ipv6) if family in (ipv4, ipv6) else None)


def _v2_addresses(data: bytes, *, is_ipv6: bool) -> Addresses:
    at = _V2_HEAD.size
    if not is_ipv6:
        source, destination, source_port, destination_port = struct.unpack_from(">4s4sHH", data, at)
    else:
        source, destination, source_port, destination_port = struct.unpack_from(">16s16sHH", data, at)
    return Addresses((_text(source), source_port), (_text(destination), destination_port))


def _text(packed: bytes) -> str:
    """Write an address as those of connections are written: `ipaddress` does so from Python 3.13 on only."""
    return socket.inet_ntop(socket.AF_INET6 if len(packed) == 16 else socket.AF_INET, packed)


def _check_tlvs(data: bytes) -> None:
    """Walk over the type-length-value fields: none may reach beyond the header (section 2.2.7)."""
    at = 0
    while at < len(data):
        if at + 3 > len(data):
            raise BadProxyHeader("a TLV that is cut")
        at += 3 + int.from_bytes(data[at + 1 : at + 3], "big")
    if at > len(data):
        raise BadProxyHeader("a TLV that reaches beyond the header")


def write_proxy_header(version: Literal[1, 2], addresses: Addresses | None) -> bytes:
    """Write a header; without addresses one that leaves those of the connection in force.

    Addresses of two families are written as IPv6, the IPv4 one mapped (`::ffff:10.0.0.1`).
    """
    if addresses is None:
        return b"PROXY UNKNOWN\r\n" if version == 1 else _V2_HEAD.pack(_SIGNATURE, _LOCAL, 0, 0)
    if version == 2:
        return _write_v2(addresses, _TCP4, _TCP6)
    (source, source_port), (destination, destination_port) = _of_one_family(addresses)
    family = "TCP6" if ":" in source else "TCP4"
    return f"PROXY {family} {source} {destination} {source_port} {destination_port}\r\n".encode()


def write_datagram_header(addresses: Addresses) -> bytes:
    """Write the header of version 2 that each datagram of a session begins with; families as `write_proxy_header`."""
    return _write_v2(addresses, _UDP4, _UDP6)


def _write_v2(addresses: Addresses, ipv4: int, ipv6: int) -> bytes:
    (source, source_port), (destination, destination_port) = _of_one_family(addresses)
    is_ipv6 = ":" in source
    kind = socket.AF_INET6 if is_ipv6 else socket.AF_INET
    packed = socket.inet_pton(kind, source) + socket.inet_pton(kind, destination)
    body = packed + struct.pack(">HH", source_port, destination_port)
    return _V2_HEAD.pack(_SIGNATURE, _PROXY, ipv6 if is_ipv6 else ipv4, len(body)) + body


def _of_one_family(addresses: Addresses) -> Addresses:
    (source, source_port), (destination, destination_port) = addresses
    if ":" not in source and ":" not in destination:
        return addresses
    return Addresses((_as_ipv6(source), source_port), (_as_ipv6(destination), destination_port))


def _as_ipv6(address: str) -> str:
    return address.partition("%")[0] if ":" in address else f"::ffff:{address}"
