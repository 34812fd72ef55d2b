"""One connection to Redis that many share: commands go out in order, answers come back in order.

redis-py's pools lend a connection to one caller, who must read the answer before another may write. A caller that
is cancelled in between leaves an answer behind, and the next one takes it for its own (CVE-2023-28858, CVE-2023-28859,
redis-py issues 2624 and 2665); and the pool for Sentinels loses a connection at every failover (issue 4187). Here
no caller ever reads: one task writes, one reads, and a caller who leaves only does not hear the answer. Commands
that wait for the answer of others cost no connection of their own.

Of redis-py this takes the connection itself: sockets, TLS, authentication and the protocol.
"""

import asyncio
import logging
import os
import re
import socket
import ssl
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, Protocol, cast

from redis.asyncio.connection import Connection, SSLConnection
from redis.exceptions import RedisError, ResponseError

from headgate.common.errors import NotPermitted, StoreError, StoreUnavailable
from headgate.common.pem import load_key_pair
from headgate.common.service.tasks import run_together
from headgate.common.stores.redis.target import Dial, Login, RedisTarget, Server, TlsIdentity
from headgate.common.trust import OF_NEWER_PYTHON

_log = logging.getLogger(__name__)

CONNECT_S = 2.0
SILENCE_S = 5.0
"""A server that owes an answer and says nothing for this long is taken for dead. Far above a large chunk's transfer."""
_LOOK_S = 0.25
_PASSING = {"BUSY", "CLUSTERDOWN", "LOADING", "MASTERDOWN", "MISCONF", "NOREPLICAS", "OOM", "READONLY", "TRYAGAIN"}
"""Codes of errors that are about the server's state and not about the command."""
_UNNAMEABLE = re.compile(r"[^!-~]")
"""What `CLIENT SETNAME` refuses."""

Word = str | bytes | int


class Wire(Protocol):
    """What we use of redis-py's connection."""

    def pack_command(self, *args: Word) -> list[bytes]:
        """Encode a command."""
        ...

    async def connect(self) -> None:
        """Connect, authenticate, select the database."""
        ...

    async def send_packed_command(self, command: Iterable[bytes], check_health: bool = True) -> None:
        """Write."""
        ...

    async def read_response(self, disable_decoding: bool = False) -> Any:
        """Read one answer; raises what the server refuses."""
        ...

    async def disconnect(self, nowait: bool = False) -> None:
        """Close."""
        ...


class DialledConnection(Connection):
    """redis-py's connection on a socket that somebody else connects."""

    def __init__(self, *, dial_by: Dial, **options: Any) -> None:
        super().__init__(**options)
        self._dial_by = dial_by
        self._dialled: socket.socket | None = None

    async def _connect(self) -> None:
        self._dialled = await self._dial_by(self.host, self.port)
        try:
            await super()._connect()  # type: ignore[no-untyped-call]
        except BaseException:
            self._dialled.close()
            raise

    def _connection_arguments(self) -> Mapping[str, Any]:
        given = super()._connection_arguments()
        arguments = {name: value for name, value in given.items() if name not in ("host", "port")}
        if "ssl" in arguments:
            arguments["server_hostname"] = self.host
        return {**arguments, "sock": self._dialled}


class DialledSSLConnection(DialledConnection, SSLConnection):
    """The same with TLS."""


async def dial(
    target: RedisTarget,
    server: Server,
    login: Login,
    *,
    name: str = "",
    database: int = 0,
    dial_by: Dial | None = None,
) -> Wire:
    """Connect and authenticate; `dial_by` connects the socket, by default redis-py does.

    Raises:
        StoreUnavailable: not possible now.
    """
    options: dict[str, Any] = {"username": login.user or None, "password": login.password or None}
    if target.is_tls:
        options |= _tls_options(target)
    make = connection_class(target, dial_by)
    # Time is kept here and not by redis-py, which would start a task for every write. Nor does it say what library this
    # is: that would be one more command that a user of few rights must be allowed.
    wire = cast(
        Wire,
        make(
            host=server.host,
            port=server.port,
            db=database,
            protocol=2,
            client_name=_UNNAMEABLE.sub("-", name) or None,
            socket_timeout=None,
            socket_connect_timeout=CONNECT_S,
            driver_info=None,
            **options,
        ),
    )
    try:
        async with asyncio.timeout(CONNECT_S):
            await wire.connect()
    except (RedisError, OSError, TimeoutError) as error:
        await hang_up(wire)
        raise StoreUnavailable(f"{server}: {reason_of(error)}") from error
    except BaseException:
        await wire.disconnect(nowait=True)
        raise
    return wire


def connection_class(target: RedisTarget, dial_by: Dial | None) -> Callable[..., Connection]:
    """Return what makes connections of redis-py whose sockets are connected by `dial_by`.

    Raises:
        StoreUnavailable: what is shown to the server, or the authorities, cannot be read.
    """
    make: Callable[..., Connection] = SSLConnection if target.is_tls else Connection
    if dial_by is not None:
        make = partial(DialledSSLConnection if target.is_tls else DialledConnection, dial_by=dial_by)
    if not target.is_tls or target.identity == TlsIdentity():
        return make
    return partial(_make_with, make, _context_of(target))


def _make_with(make: Callable[..., Any], context: ssl.SSLContext, **options: Any) -> Connection:
    """Make a connection with a context of ours: redis-py takes certificates in files alone."""
    connection = make(**options)
    connection.ssl_context.context = context
    return cast(Connection, connection)


def _context_of(target: RedisTarget) -> ssl.SSLContext:
    context, identity = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT), target.identity
    try:
        if not target.is_verified:
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        elif identity.authorities:
            context.load_verify_locations(cadata=identity.authorities)
        else:
            context.load_default_certs()
        if identity.certificate:
            load_key_pair(context, identity.certificate.encode(), identity.key.encode())
    except (ssl.SSLError, ValueError) as error:
        raise StoreUnavailable(f"authorities, certificate or key for TLS to Redis cannot be read: {error}") from error
    return context


def _tls_options(target: RedisTarget) -> dict[str, Any]:
    named = {
        "ssl_ca_certs": target.ca_file,
        "ssl_certfile": target.certificate_file,
        "ssl_keyfile": target.key_file,
    }
    files = {option: str(path) for option, path in named.items() if path is not None}
    for path in files.values():
        if not os.access(path, os.R_OK):  # the error of `ssl` does not say which file it is about
            raise StoreUnavailable(f"{path} for TLS to Redis cannot be read")
    if not target.is_verified:
        return {**files, "ssl_cert_reqs": "none", "ssl_check_hostname": False}
    return {**files, "ssl_exclude_verify_flags": [*OF_NEWER_PYTHON]}


async def hang_up(wire: Wire) -> None:
    """Close, whatever state the connection is in."""
    try:
        await wire.disconnect()
    except (RedisError, OSError) as error:
        _log.debug("closing a connection to Redis failed", extra={"reason": reason_of(error)})


async def ask_alone(wire: Wire, within_s: float, *words: Word) -> Any:
    """Send one command on a connection that has no other user, and return the answer.

    A caller that sees this fail must hang up: an answer may still come.

    Raises:
        StoreError: refused.
        StoreUnavailable: no answer in time, or the connection broke.
    """
    try:
        async with asyncio.timeout(within_s):
            await wire.send_packed_command(wire.pack_command(*words), check_health=False)
            return await wire.read_response(disable_decoding=True)
    except ResponseError as error:
        raise refusal(error) from error
    except (RedisError, OSError, TimeoutError) as error:
        raise StoreUnavailable(f"Redis did not answer: {reason_of(error)}") from error


def refusal(error: ResponseError) -> StoreError:
    """Wrap what a server says in place of an answer."""
    # redis-py takes the code off the messages of errors that it has a class for.
    text = f"{error.status_code} {error}" if error.status_code else str(error)
    if text.split(" ", 1)[0] in _PASSING:
        return StoreUnavailable(f"Redis refuses for now: {text}")
    if text.startswith("NOPERM") or "ACL failure in script" in text:
        return NotPermitted(f"Redis does not permit it to our user: {text}")
    return StoreError(f"Redis refuses: {text}")


def reason_of(error: BaseException) -> str:
    """Say in a few words what went wrong."""
    return str(error) or type(error).__name__


class Pipe:
    """Commands of many callers on one connection."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire
        self._unsent: list[bytes] = []
        self._has_unsent = asyncio.Event()
        self._awaited: deque[asyncio.Future[Any]] = deque()
        """Answers to come, in the order of the commands."""
        self._heard_at = 0.0
        """When the server last answered, or began to owe an answer."""
        self._end = ""

    async def ask(self, *words: Word) -> Any:
        """Send a command and return the answer, without decoding it.

        Raises:
            ResponseError: refused, as redis-py tells it.
            StoreUnavailable: the connection broke; the command may have been carried out or not.
        """
        if self._end:
            raise StoreUnavailable(self._end)
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[Any] = loop.create_future()
        if not self._awaited:
            self._heard_at = loop.time()
        self._awaited.append(answer)
        self._unsent += self._wire.pack_command(*words)
        self._has_unsent.set()
        return await answer

    async def run(self) -> None:
        """Carry commands and answers until the connection breaks.

        Raises:
            StoreUnavailable: it broke.
        """
        try:
            await run_together(self._write(), self._read(), self._watch())
        except (RedisError, OSError) as error:
            self._end = f"the connection to Redis broke: {reason_of(error)}"
            raise StoreUnavailable(self._end) from error
        finally:
            self._end = self._end or "the connection to Redis was given up"
            for answer in self._awaited:
                if not answer.done():
                    answer.set_exception(StoreUnavailable(self._end))
            await hang_up(self._wire)

    async def _write(self) -> None:
        while True:
            await self._has_unsent.wait()
            self._has_unsent.clear()
            packed, self._unsent = self._unsent, []
            await self._wire.send_packed_command(packed, check_health=False)

    async def _read(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            refused: ResponseError | None = None
            content = None
            try:
                content = await self._wire.read_response(disable_decoding=True)
            except ResponseError as error:
                refused = error
            self._heard_at = loop.time()
            if not self._awaited:
                raise RedisError(f"an answer to nothing: {refused or content!r}")
            answer = self._awaited.popleft()
            if answer.done():
                continue  # the caller has left
            if refused is None:
                answer.set_result(content)
            else:
                answer.set_exception(refused)

    async def _watch(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(_LOOK_S)
            if self._awaited and loop.time() - self._heard_at > SILENCE_S:
                raise RedisError(f"no answer for {SILENCE_S:g} s")
