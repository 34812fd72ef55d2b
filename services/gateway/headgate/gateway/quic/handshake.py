"""TLS within QUIC: certificate and policy by server name, as `tls.handshake` chooses them for TCP.

QUIC has TLS 1.3 alone, and this implementation asks for no client certificates and sets no groups. A host whose policy
wants any of that is refused in the handshake (`HostTls.suits_quic`), and answered with 421 on connections that were
made for another name: its clients come over TCP. Sessions are resumed by tickets (`sessions`); early data (0-RTT) is
never accepted.
"""

import logging
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple, NoReturn

from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)
from qh3 import tls
from qh3._hazmat import Buffer
from qh3.quic.configuration import QuicConfiguration
from qh3.quic.packet import QuicErrorCode
from qh3.quic.tls_bridge import QuicTlsBridge, QuicTlsBridgeError, QuicTlsCryptoData

from headgate.gateway.quic.sessions import Sessions
from headgate.gateway.tls.client_hello import MAX_HELLO, ClientHello, read_client_hello
from headgate.gateway.tls.handshake import DENIED, NO_NAME, Chosen, HandshakeCounts
from headgate.gateway.tls.identity import NOBODY, ClientIdentity
from headgate.gateway.tls.policy import HostTls

_log = logging.getLogger(__name__)

ALPN: Final = "h3"
_CLIENT_HELLO: Final = 1
_RECORD: Final = b"\x16\x03\x01"
_UNEXPECTED_MESSAGE: Final = 10
_HANDSHAKE_FAILURE: Final = 40
_ACCESS_DENIED: Final = 49
_INTERNAL_ERROR: Final = 80
_UNRECOGNIZED_NAME: Final = 112
_MAX_TICKET: Final = 512
_REMEMBERED: Final = 1024
"""Certificates that are kept as QUIC wants them."""

Choose = Callable[[str], Chosen]
"""Finds certificate and policy for a server name; empty if the client names none."""


class Presented(NamedTuple):
    """What a port presents."""

    choose: Choose
    find_policy: Callable[[bytes], HostTls | None]
    """Finds the policy of a host in lower case; None: it has none."""


FindSessions = Callable[[Chosen, str], Sessions | None]
"""Finds the sessions of a server name whose certificate and policy were chosen; None: there are none to be."""


class QuicTls:
    """What a handshake showed; stands for the `TlsConnection` of a request."""

    __slots__ = ("_choose", "_chosen", "server_name")

    def __init__(self, server_name: str, chosen: Chosen, choose: Choose) -> None:
        self.server_name = server_name
        self._chosen = chosen
        self._choose = choose

    @property
    def tls(self) -> HostTls | None:
        """The policy that the handshake followed; None: the gateway's own."""
        return self._chosen.tls

    @property
    def asked(self) -> str:
        """Nothing: no certificate is asked for."""
        return ""

    @property
    def identity(self) -> ClientIdentity:
        """Nobody known."""
        return NOBODY

    @property
    def chain(self) -> Sequence[bytes]:
        """No certificates."""
        return ()

    def suits(self, host: str) -> bool:
        """Tell whether the handshake followed the policy of a host: lower case, empty if a request names none."""
        return host == self.server_name or self._choose(host).tls is self.tls

    def version(self) -> str:
        """Version of TLS."""
        return "TLSv1.3"


class Certificates:
    """Certificates and keys as QUIC wants them, made when they are first presented."""

    def __init__(self) -> None:
        self._loaded: dict[str, QuicConfiguration | None] = {}

    def load(self, chosen: Chosen) -> QuicConfiguration | None:
        """Return chain and key in a configuration; None: they cannot be used."""
        fingerprint = chosen.certificate.fingerprint
        if fingerprint not in self._loaded:
            if len(self._loaded) >= _REMEMBERED:
                self._loaded.clear()
            self._loaded[fingerprint] = _load(chosen)
        return self._loaded[fingerprint]


def _load(chosen: Chosen) -> QuicConfiguration | None:
    entry, loaded = chosen.certificate, QuicConfiguration(is_client=False)
    try:
        key = load_pem_private_key(entry.key_pem.reveal(), None)
        plain = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        loaded.load_cert_chain(entry.chain_pem.encode(), plain)
    except Exception as error:
        # What the library raises for a kind of key that it does not know is not said; TCP serves it.
        _log.warning("certificate not usable for HTTP/3", extra={"fingerprint": entry.fingerprint, "error": str(error)})
        return None
    return loaded


class ServerTls(QuicTlsBridge):
    """The server's side of a handshake: chain and key are chosen once the ClientHello is whole."""

    def __init__(
        self,
        choose: Choose,
        sessions: FindSessions,
        certificates: Certificates,
        counts: HandshakeCounts,
        *rest: Any,
        **named: Any,
    ):
        super().__init__(*rest, **named)
        self._choose = choose
        self._find_sessions = sessions
        self._sessions: Sessions | None = None
        """To give the client a ticket of, once the handshake is complete."""
        self._certificates = certificates
        self._counts = counts
        self._hello: bytes | None = b""
        self.shown: QuicTls | None = None
        """Once it is known."""

    def receive_crypto(
        self, epoch: tls.Epoch, data: bytes, offset: int | None = None, *, version: int | None = None
    ) -> None:
        """Pass on what came; choose first, if it makes the hello whole. Raises QuicTlsBridgeError."""
        if self._hello is not None:
            self._hello += data
            self._look()
        try:
            super().receive_crypto(epoch, data, offset, version=version)
        except QuicTlsBridgeError as error:
            self._counts.fail(f"QUIC_{error.error_code:#x}")
            raise
        except (ValueError, AssertionError, IndexError, TypeError) as error:
            self._refuse(_HANDSHAKE_FAILURE, "MALFORMED", f"malformed TLS message: {error}")
        if self._sessions is not None and self.handshake_complete:
            self._give_ticket(self._sessions)

    def _look(self) -> None:
        hello = self._hello or b""
        if len(hello) < 4:
            return
        size = 4 + int.from_bytes(hello[1:4], "big")
        if hello[0] != _CLIENT_HELLO or size > MAX_HELLO:
            self._refuse(_UNEXPECTED_MESSAGE, "UNEXPECTED_MESSAGE", "not a ClientHello, or a very long one")
        if len(hello) < size:
            return
        self._hello = None
        message = hello[:size]
        read = read_client_hello(_RECORD + len(message).to_bytes(2, "big") + message)
        if not isinstance(read, ClientHello):
            self._refuse(_HANDSHAKE_FAILURE, "MALFORMED", "malformed ClientHello")
        self._present(read.server_name)

    def _present(self, server_name: str) -> None:
        chosen = self._choose(server_name)
        if chosen.is_refused:
            self._refuse(_UNRECOGNIZED_NAME, NO_NAME, "no certificate has the server name")
        if chosen.tls is not None and not chosen.tls.suits_quic:
            self._refuse(_ACCESS_DENIED, DENIED, "the host's policy cannot be followed over QUIC")
        loaded = self._certificates.load(chosen)
        if loaded is None:
            self._refuse(_INTERNAL_ERROR, "CERTIFICATE_UNUSABLE", "no certificate")
        self.tls.certificate = loaded.certificate
        self.tls.certificate_chain = loaded.certificate_chain
        self.tls.certificate_private_key = loaded.private_key
        self.shown = QuicTls(server_name, chosen, self._choose)
        self._sessions = self._find_sessions(chosen, server_name)
        self.tls.get_session_ticket_cb = self._sessions.open if self._sessions is not None else None

    def _on_traffic_secret(
        self, direction: tls.Direction, epoch: tls.Epoch, cipher_suite: tls.CipherSuite, secret: bytes
    ) -> None:
        """Pass keys on, but none for early data; qh3 accepts what clients offer with any ticket."""
        if epoch == tls.Epoch.ZERO_RTT:
            self.tls.early_data_accepted = False
            return
        super()._on_traffic_secret(direction, epoch, cipher_suite, secret)

    def _give_ticket(self, sessions: Sessions) -> None:
        """Say how the client may come back."""
        self._sessions = None
        self._counts.resumed += self.tls.session_resumed
        assert self.tls.key_schedule is not None, "the handshake is complete"
        message, epoch = Buffer(capacity=_MAX_TICKET), tls.Epoch.ONE_RTT
        tls.push_new_session_ticket(message, sessions.ticket_for(self.tls.key_schedule))
        offset = self._output_offsets[epoch]
        self._outbound.append(QuicTlsCryptoData(epoch, offset, message.data))
        self._output_offsets[epoch] = offset + len(message.data)

    def _refuse(self, alert: int, counted: str, reason: str) -> NoReturn:
        self._counts.fail(counted)
        raise QuicTlsBridgeError(QuicErrorCode.CRYPTO_ERROR + alert, reason)
