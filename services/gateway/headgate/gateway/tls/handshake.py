"""A listener's side of the handshake: the context is chosen by server name before OpenSSL begins.

`SSLContext.sni_callback` is not enough. Putting another context in its place swaps certificate, ciphers and ALPN;
whether a client certificate is asked for and which versions are spoken stays as it was, because OpenSSL copied that to
the connection when it was made. So the event loop gets a `ServerConnection` in place of the `ssl.SSLObject`: it waits
for the ClientHello, chooses the context, and from then on passes everything to the real object. That is also the only
place where failed handshakes can be counted, as the event loop tells no protocol of them.

Contexts of their own per host also keep sessions apart: each has its own ticket keys and session cache, so a session
from one host is never resumed with another, and none outlives a change of its host's authorities. Where processes share
ticket keys, these are for one scope each (`tickets`).
"""

import ssl
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple, NoReturn, cast
from weakref import WeakSet

from headgate.common.table import ALPN_CHALLENGE
from headgate.gateway.tls import lenient
from headgate.gateway.tls.client_hello import ClientHello, HelloOutcome, read_client_hello
from headgate.gateway.tls.identity import ClientIdentity, read_identity
from headgate.gateway.tls.loading import below_object, presented_chain, verified_intermediates
from headgate.gateway.tls.policy import HostTls, is_lenient

if TYPE_CHECKING:
    from headgate.gateway.tls.server import CertificateEntry

_REASONS_LIMIT: Final = 64
_OTHER: Final = "OTHER"
TOO_MANY: Final = "TOO_MANY_HANDSHAKES"
NO_NAME: Final = "UNRECOGNIZED_NAME"
DENIED: Final = "ACCESS_DENIED"
"""Our own reasons, beside OpenSSL's."""
_CHALLENGE: Final = ALPN_CHALLENGE.encode()
_NO_NAME_ALERT: Final = b"\x15\x03\x03\x00\x02\x02\x70"
"""A fatal alert of `unrecognized_name` (RFC 8446, sections 5.1 and 6)."""
_DENIED_ALERT: Final = b"\x15\x03\x03\x00\x02\x02\x31"
"""A fatal alert of `access_denied`."""
SESSIONS_LIMIT: Final = 500
"""Sessions that one context keeps for TLS 1.2 clients without tickets, about 1 KiB each. OpenSSL's own limit of 20,480
cannot be set through `ssl`, and is too much for contexts that are as many as hosts."""


class HandshakeCounts:
    """What happened to handshakes; plain integers."""

    __slots__ = ("completed", "failed", "resumed", "started")

    def __init__(self) -> None:
        self.started = 0
        """Connections accepted. Those that neither completed nor failed are under way, or were cut or timed out."""
        self.completed = 0
        """Of them `resumed` with a session of an earlier connection."""
        self.resumed = 0
        self.failed: dict[str, int] = {}
        """By OpenSSL's reason: `NO_SHARED_CIPHER`, `CERTIFICATE_VERIFY_FAILED`, ..."""

    def fail(self, reason: str) -> None:
        """Count a failure."""
        if reason not in self.failed and len(self.failed) >= _REASONS_LIMIT:
            reason = _OTHER
        self.failed[reason] = self.failed.get(reason, 0) + 1


class Chosen(NamedTuple):
    """The context for a server name and the policy that it was made for."""

    context: ssl.SSLContext
    tls: HostTls | None
    certificate: "CertificateEntry"
    is_refused: bool = False
    """No certificate has the name, and the policy wants one that has."""


class ListenerContext(ssl.SSLContext):
    """What `create_server` takes: makes connections that choose their real context themselves."""

    choose: Callable[[str], Chosen]
    """Finds the context for a server name; empty if the client names none."""
    choose_challenge: Callable[[str], Chosen | None]
    """Finds the context that answers an authority (RFC 8737) about a name; None: nothing is asked about it."""
    counts: HandshakeCounts
    renew: Callable[[Chosen], None]
    """Drops a context, so that the next connection gets a new one."""
    max_pending: int | None
    """Handshakes in progress at once, further ones are ended as they begin; None is no limit."""
    pending: "WeakSet[ServerConnection]"
    """Handshakes in progress. asyncio reports none that is cut off; the weak set loses it with its connection."""

    def wrap_bio(
        self,
        incoming: ssl.MemoryBIO,
        outgoing: ssl.MemoryBIO,
        server_side: bool = False,
        server_hostname: str | bytes | None = None,
        session: ssl.SSLSession | None = None,
    ) -> ssl.SSLObject:
        """Begin a connection; the event loop calls it for each that it accepts."""
        self.counts.started += 1
        connection = ServerConnection(self, incoming, outgoing)
        if self.max_pending is not None and len(self.pending) >= self.max_pending:
            connection.refuse()
        else:
            self.pending.add(connection)
        return cast(ssl.SSLObject, connection)


class ServerConnection:
    """Stands for the `ssl.SSLObject` of an accepted connection; `get_extra_info("ssl_object")` gives it."""

    __slots__ = (
        "__weakref__",
        "_chain",
        "_chosen",
        "_failure",
        "_identity",
        "_incoming",
        "_listener",
        "_object",
        "_outgoing",
        "_pending",
        "_read",
        "_verdict",
        "_write",
        "server_name",
    )

    def __init__(self, listener: ListenerContext, incoming: ssl.MemoryBIO, outgoing: ssl.MemoryBIO) -> None:
        self._listener = listener
        self._incoming = incoming
        self._outgoing = outgoing
        self._object: ssl.SSLObject | None = None
        # Of what is below that object, whose own methods would only call these.
        self._read: Callable[..., Any]
        self._write: Callable[[bytes], int]
        self._pending: Callable[[], int] = _nothing
        self._failure: tuple[object, ...] | None = None
        """What the error says that comes after the alert. The error itself would hold this object by its traceback."""
        self._identity: ClientIdentity | None = None
        self._chain: Sequence[bytes] | None = None
        self._chosen: Chosen | None = None
        self.server_name = ""
        """That the client asked for; empty if it did for none."""
        self._verdict = 0
        """OpenSSL's code of what is wrong with the certificate, where the handshake goes on with a bad one."""

    @property
    def tls(self) -> HostTls | None:
        """The policy that the handshake followed; None: the gateway's own."""
        return self._chosen.tls if self._chosen is not None else None

    @property
    def asked(self) -> str:
        """What a client certificate was verified against (`ClientGuard.asked`); empty if none was asked for."""
        guard = self.tls.guard if self.tls is not None else None
        return guard.asked if guard is not None else ""

    def suits(self, host: str) -> bool:
        """Tell whether the handshake followed the policy of a host: lower case, empty if a request names none."""
        return host == self.server_name or self._listener.choose(host).tls is self.tls

    @property
    def identity(self) -> ClientIdentity:
        """Who the client is, read once."""
        if self._identity is None:
            certificate, code = self._real().getpeercert(binary_form=True), self._verdict
            failure = lenient.error_text(code) if code else ""
            self._identity = read_identity(certificate, failure=failure, lacks_authority=lenient.lacks_authority(code))
        return self._identity

    @property
    def chain(self) -> Sequence[bytes]:
        """Certificates in DER that the client sent, its own first, read once."""
        if self._chain is None:
            self._chain = presented_chain(self._real())
        return self._chain

    def do_handshake(self) -> None:
        """Go on with the handshake. Raises ssl.SSLWantReadError for more bytes, ssl.SSLError when it failed."""
        if self._failure is not None:
            raise ssl.SSLError(*self._failure)
        connection = self._object or self._begin()
        lenient.begin()
        try:
            connection.do_handshake()
            self._verdict = self._verdict or lenient.last_error()
            self._check_depth(connection)
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
            self._verdict = self._verdict or lenient.last_error()
            raise
        except ssl.SSLError as error:
            self._fail(error)
        self._listener.pending.discard(self)
        counts = self._listener.counts
        counts.completed += 1
        counts.resumed += bool(connection.session_reused)
        self._bound_sessions(connection)

    def _bound_sessions(self, connection: ssl.SSLObject) -> None:
        chosen = self._chosen
        # TLS 1.3 keeps sessions in tickets only.
        if chosen is None or connection.version() == "TLSv1.3":
            return
        if chosen.context.session_stats()["number"] > SESSIONS_LIMIT:
            self._listener.renew(chosen)

    def _begin(self) -> ssl.SSLObject:
        """Look at what came, put it back, and choose the context once the hello is whole."""
        data = self._incoming.read()
        self._incoming.write(data)
        hello = read_client_hello(data)
        if hello is HelloOutcome.NEED_MORE:
            raise ssl.SSLWantReadError(ssl.SSL_ERROR_WANT_READ, "the ClientHello is not there to its end")
        # What is no hello is OpenSSL's to refuse.
        self._chosen = self._choose(hello)
        if self._chosen.is_refused:
            self._outgoing.write(_NO_NAME_ALERT)
            self._fail(_failure(NO_NAME, "no certificate has the server name"))
        if self.tls is not None and self.tls.admits_nobody:
            self._outgoing.write(_DENIED_ALERT)
            self._fail(_failure(DENIED, "the host takes client certificates, and of no authority"))
        made = self._chosen.context.wrap_bio(self._incoming, self._outgoing, server_side=True)
        below = below_object(made)
        self._read, self._write, self._pending = below.read, below.write, below.pending
        self._object = made
        return made

    def _choose(self, hello: ClientHello | HelloOutcome) -> Chosen:
        if not isinstance(hello, ClientHello):
            return self._listener.choose("")
        self.server_name = hello.server_name
        if _CHALLENGE in hello.alpn:
            answer = self._listener.choose_challenge(hello.server_name)
            if answer is not None:
                return answer
        return self._listener.choose(hello.server_name)

    def _check_depth(self, connection: ssl.SSLObject) -> None:
        auth = self.tls.policy.client_auth if self.tls is not None and not self.tls.problem else None
        if auth is not None and verified_intermediates(connection) > auth.depth:
            if is_lenient(auth):
                self._verdict = self._verdict or lenient.CHAIN_TOO_LONG
                return
            # A session ticket lies ready to be sent: with it the client could come back without a chain.
            self._outgoing.read()
            error = ssl.SSLCertVerificationError(ssl.SSL_ERROR_SSL, "certificate chain too long")
            error.reason = "CERTIFICATE_CHAIN_TOO_LONG"
            raise error

    def refuse(self) -> None:
        """Fail at once, without a word: there are too many handshakes in progress."""
        self._listener.counts.fail(TOO_MANY)
        self._failure = (ssl.SSL_ERROR_SSL, "too many handshakes in progress")

    def _fail(self, error: ssl.SSLError) -> NoReturn:
        self._listener.counts.fail(error.reason or _OTHER)
        if not self._outgoing.pending:
            raise error
        # The loop drops what is unsent when a handshake fails; asked for more bytes it sends the alert first. The
        # client then closes, and if it does not, the loop's limit for handshakes ends it.
        self._failure = error.args
        raise ssl.SSLWantReadError(ssl.SSL_ERROR_WANT_READ, "an alert is to be sent") from error

    def _real(self) -> ssl.SSLObject:
        if self._object is None:
            raise ValueError("the handshake has not begun")
        return self._object

    # What event loops and their users call on an SSLObject.

    def read(self, size: int = 1024, buffer: bytearray | None = None) -> Any:
        """Read decrypted bytes."""
        return self._read(size) if buffer is None else self._read(size, buffer)

    def write(self, data: bytes) -> int:
        """Encrypt bytes."""
        return self._write(data)

    def pending(self) -> int:
        """Count decrypted bytes that wait."""
        return self._pending()

    def unwrap(self) -> None:
        """Close TLS."""
        self._real().unwrap()

    def getpeercert(self, binary_form: bool = False) -> Any:
        """Return the client's certificate."""
        return self._real().getpeercert(binary_form)

    def cipher(self) -> tuple[str, str, int] | None:
        """Return name, protocol and bits of the cipher."""
        return self._real().cipher()

    def compression(self) -> str | None:
        """Return None: there is none."""
        return self._real().compression()

    def selected_alpn_protocol(self) -> str | None:
        """Return what was agreed upon."""
        return self._real().selected_alpn_protocol()

    def version(self) -> str | None:
        """Return the version: `TLSv1.3`."""
        return self._real().version()

    @property
    def session_reused(self) -> bool | None:
        """Tell whether an earlier session was resumed."""
        return self._real().session_reused


def _nothing() -> int:
    return 0


def _failure(reason: str, message: str) -> ssl.SSLError:
    error = ssl.SSLError(ssl.SSL_ERROR_SSL, message)
    error.reason = reason
    return error
