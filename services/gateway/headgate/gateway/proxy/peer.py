"""Who is at the other end of a client's connection."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from headgate.gateway.net.proxy_protocol import Addresses
    from headgate.gateway.tls.identity import TlsConnection


class Peer:
    """The client's side of one connection, as upstreams are told of it."""

    __slots__ = (
        "_address_text",
        "_port_number",
        "address",
        "addresses",
        "alt_svc",
        "is_trusted",
        "lines",
        "names_https",
        "port",
        "scheme",
        "tls",
    )

    def __init__(
        self,
        address: bytes,
        scheme: bytes,
        port: bytes,
        addresses: "Addresses | None" = None,
        tls: "TlsConnection | None" = None,
        *,
        is_trusted: bool = False,
        names_https: bool = False,
        chain: bytes = b"",
    ) -> None:
        self.is_trusted = is_trusted
        """What it says of a request's origin is believed."""
        self.names_https = names_https
        """Its PROXY header names port 443: its requests count as https, whatever they claim themselves."""
        self.addresses = addresses
        """Of both ends, for upstreams that want a PROXY protocol header; None: unknown."""
        self.tls = tls
        """What the handshake showed; None: plain."""
        self.address = address
        self._address_text = ""
        self.alt_svc = b""
        """Header line of answers that offers the client HTTP/3; empty: it is not offered."""
        self.scheme = scheme
        self.port = port
        """Port that the client connected to."""
        self._port_number = -1
        self.lines = b"X-Forwarded-For: %b\r\nX-Forwarded-Proto: %b\r\nX-Forwarded-Port: %b\r\nX-Real-IP: %b\r\n" % (
            chain or address,
            scheme,
            port,
            address,
        )
        """What every request of the connection says of it, unless a trusted client has said it before."""

    @property
    def address_text(self) -> str:
        """The address as a text, made once for a connection, if anybody asks."""
        text = self._address_text
        if not text:
            text = self._address_text = self.address.decode("latin-1")
        return text

    @property
    def port_number(self) -> int:
        """The port as a number, made alike."""
        number = self._port_number
        if number < 0:
            number = self._port_number = int(self.port)
        return number
