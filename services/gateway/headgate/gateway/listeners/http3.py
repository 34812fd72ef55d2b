"""HTTP/3 beside a port for TLS. Imported only where it is wanted, as it loads QUIC."""

from headgate.gateway.listeners.http_port import HttpPort
from headgate.gateway.net.sockets import open_listener
from headgate.gateway.quic.endpoint import QuicEndpoint
from headgate.gateway.quic.forwarding import NO_FORWARDING, Forwarding
from headgate.gateway.tls import CertificateStore


def serve_http3(
    port: HttpPort,
    host: str,
    certificates: CertificateStore,
    max_age_s: int,
    *,
    reuse_port: bool = False,
    forwarding: Forwarding = NO_FORWARDING,
) -> None:
    """Speak HTTP/3 on the UDP port with the number of a port for TLS, and offer it to the latter's clients.

    Args:
        port: for TLS, open.
        host: address to bind.
        certificates: what is presented, by server name.
        max_age_s: how long clients may remember the offer.
        reuse_port: other processes have the same port.
        forwarding: to these.

    Raises:
        OSError: the UDP port cannot be bound.
    """
    bound = open_listener(host, port.number, datagrams=True, reuse_port=reuse_port)
    endpoint = QuicEndpoint(bound, lambda: port.context, certificates, port.shown, forwarding)
    port.serve_datagrams(endpoint, max_age_s)
