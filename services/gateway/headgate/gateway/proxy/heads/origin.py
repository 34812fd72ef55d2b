"""Who sent a request, where trusted proxies are in front and say so.

A client can write whatever it likes into `X-Forwarded-For`; what counts is the part that trusted proxies added. Each
appends the address that it was connected to, so the list is walked from its end over the trusted ones: the first that
is not trusted is the client. The first entry of the list, which is often taken instead, is the client's own word.
"""

import re
from collections.abc import Iterable
from typing import Final

from headgate.gateway.model.addresses import NetworkSet, is_address
from headgate.gateway.proxy.config import ProxyConfig
from headgate.gateway.proxy.heads.grammar import TOKEN
from headgate.gateway.proxy.heads.head import RequestFields
from headgate.gateway.proxy.peer import Peer

_NODE: Final = re.compile(rb"\[([0-9A-Fa-f:.]++)\](?::[0-9]{1,5})?+|([0-9]++(?:\.[0-9]++){3})(?::[0-9]{1,5})?+")
"""An address that may have a port behind it, so that IPv6 is in brackets."""
_ELEMENT: Final = re.compile(rb"(?:[^,\"]++|\"(?:[^\"\\]++|\\.)*+\")++")
"""Of `Forwarded`: what is between two commas outside quotes."""
_PAIR: Final = rb"[ \t]*+" + TOKEN + rb"++=(?:" + TOKEN + rb"++|\"(?:[^\"\\]++|\\.)*+\")[ \t]*+"
_PAIRS: Final = re.compile(_PAIR + rb"(?:;" + _PAIR + rb")*+")
_PAIR_OF_ELEMENT: Final = re.compile(rb"(?:[^;\"]++|\"(?:[^\"\\]++|\\.)*+\")++")


class TrustedPeers:
    """The peers that may say whose requests they send."""

    __slots__ = ("_all", "_header", "_networks", "_takes_address", "_takes_headers", "_tells_all")

    def __init__(self, config: ProxyConfig) -> None:
        self._all = config.trust_forwarded
        self._networks = NetworkSet(config.trusted_proxies)
        self._header = config.real_ip_header.lower().encode()
        self._takes_address = config.forwarded_address
        self._takes_headers = config.forwarded_headers
        self._tells_all = config.full_forwarded_for

    def includes(self, address: str) -> bool:
        """Tell whether a peer is one of them."""
        return self._all or address in self._networks

    def origin(self, peer: Peer, fields: RequestFields) -> Peer:
        """Give the client of a request that a trusted peer sent, as upstreams, logs and limits see it."""
        claimed = fields.forwarded
        if not claimed:
            return peer
        chain = claimed.get(self._header, b"") if self._takes_address else b""
        address = self._address(chain, peer.address)
        if not self._takes_headers:
            return Peer(address, peer.scheme, peer.port, peer.addresses, peer.tls, is_trusted=True)
        fields.passes_claims = True
        if not self._takes_address:
            claimed.pop(self._header, None)
        scheme = claimed.get(b"x-forwarded-proto", b"").partition(b",")[0].strip(b" \t").lower()
        scheme = peer.scheme if peer.names_https else _SCHEMES.get(scheme, peer.scheme)
        port = claimed.get(b"x-forwarded-port", b"").partition(b",")[0].strip(b" \t")
        if not port.isdigit() or len(port) > _PORT_DIGITS:
            port = peer.port
        chain = b""
        if self._tells_all:
            chain = claimed.get(b"x-forwarded-for", b"")
            chain = b"%b, %b" % (chain, peer.address) if chain else peer.address
        return Peer(address, scheme, port, peer.addresses, peer.tls, is_trusted=True, chain=chain)

    def _address(self, value: bytes, nearest: bytes) -> bytes:
        """Walk a list of addresses from its end; `nearest` is the peer's, which is trusted."""
        for node in _nodes(value, is_forwarded=self._header == b"forwarded"):
            address = _bare_address(node)
            if not address:
                # Nobody can say who is behind that.
                break
            nearest = address
            if not self.includes(address.decode()):
                break
        return nearest


_SCHEMES: Final = {b"http": b"http", b"https": b"https", b"ws": b"http", b"wss": b"https"}
"""That a proxy may name, with those that are meant: a websocket begins as a request."""
_PORT_DIGITS: Final = 5


def _nodes(value: bytes, *, is_forwarded: bool) -> Iterable[bytes]:
    """Give the members of the list, last first; of one that is malformed something that is no address."""
    if not is_forwarded:
        return reversed(value.split(b","))
    elements: list[bytes] = _ELEMENT.findall(value)
    return [_node_of(element) for element in reversed(elements)]


def _node_of(element: bytes) -> bytes:
    """Give what an element of `Forwarded` says of `for`, without quotes; nothing if it is malformed."""
    if _PAIRS.fullmatch(element) is None:
        return b""
    pair: bytes
    for pair in _PAIR_OF_ELEMENT.findall(element):
        name, _, node = pair.strip(b" \t").partition(b"=")
        if name.lower() == b"for":
            return node.strip(b'"')
    return b""


def _bare_address(node: bytes) -> bytes:
    """Take the port from an address; empty if it is none."""
    node = node.strip(b" \t")
    found = _NODE.fullmatch(node)
    if found is not None:
        node = found[1] or found[2]
    text = node.decode("latin-1")
    return node.removeprefix(b"::ffff:") if is_address(text) else b""
