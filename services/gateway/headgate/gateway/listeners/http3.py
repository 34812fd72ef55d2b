"""HTTP/3 beside ports for TLS. Imported only where it is wanted, as it loads QUIC."""

import errno
from collections.abc import Callable

from headgate.gateway.listeners.http_port import HttpPort
from headgate.gateway.net.sockets import open_listener
from headgate.gateway.quic.endpoint import QuicEndpoint
from headgate.gateway.quic.forwarding import NO_FORWARDING, Forwarding
from headgate.gateway.quic.handshake import Presented
from headgate.gateway.tls import CertificateStore
from headgate.gateway.tls.handshake import ListenerContext
from headgate.gateway.tls.server import FindPolicy


class Http3Ports:
    """Opens UDP ports with the numbers of ports for TLS.

    Args:
        certificates: that are presented.
        max_age_s: how long clients may remember that HTTP/3 is offered.
        reuse_port: other processes have the same ports.
        forwarding: makes the way to these for a port, by its name.
    """

    def __init__(
        self,
        certificates: CertificateStore,
        max_age_s: int,
        *,
        reuse_port: bool = False,
        forwarding: Callable[[str], Forwarding] = lambda _: NO_FORWARDING,
    ) -> None:
        self._certificates = certificates
        self._max_age_s = max_age_s
        self._reuse_port = reuse_port
        self._forwarding = forwarding
        self._opened: dict[tuple[str, int], HttpPort] = {}

    def serve_own(self, port: HttpPort, host: str) -> None:
        """Speak HTTP/3 on the number of the gateway's own port for TLS, and offer it to the latter's clients.

        Args:
            port: for TLS, open.
            host: address to bind.

        Raises:
            OSError: the UDP port cannot be bound.
        """
        self._serve(port, host, None, "")

    def serve(self, port: HttpPort, host: str, tls: ListenerContext, find_policy: FindPolicy) -> None:
        """Speak HTTP/3 beside a port of the table.

        Args:
            port: for TLS, open.
            host: address to bind.
            tls: knows what is presented there.
            find_policy: knows the policies of hosts there.

        Raises:
            OSError: the UDP port cannot be bound, or connections of its last use are open still.
        """
        before = self._opened.get((host, port.number))
        if before is not None and before.has_datagrams:
            if before is not port:
                # Sockets that share a port would get each other's datagrams.
                raise OSError(errno.EADDRINUSE, "connections of HTTP/3 are open from before")
            port.drop_datagrams()
        self._serve(port, host, Presented(tls.choose, find_policy), f"-{port.number}-{host.replace(':', '.')}")
        self._opened = {key: each for key, each in self._opened.items() if each.has_datagrams}
        self._opened[(host, port.number)] = port

    def _serve(self, port: HttpPort, host: str, presented: Presented | None, name: str) -> None:
        bound = open_listener(
            host, port.number, datagrams=True, reuse_port=self._reuse_port, may_be_absent=presented is not None
        )
        endpoint = QuicEndpoint(
            bound,
            lambda: port.context,
            self._certificates,
            port.shown,
            self._forwarding(name),
            presented=presented,
            header_senders=port.header_senders,
        )
        port.serve_datagrams(endpoint, self._max_age_s)
