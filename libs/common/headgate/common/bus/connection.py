"""The connection to NATS that never gives up.

nats-py reconnects by itself, but a client can still be lost for good: the server closes it (expired credentials, an
authorization error), or its read loop or its reconnecting dies of an exception. So a supervisor watches the client and
makes it again; holders of subscriptions hear of it by `on_reconnect`, as a subscription lives on one client only and an
ephemeral consumer does not survive the server.

nats-py's own defaults print a traceback for every failed attempt and stop after 60 of them; here each outage is a
line at its begin, one for each kind of reason, and one at its end; waits grow from 50 ms to 2 s with jitter: a local
server that is restarted is back at once, and a fleet does not return in step.
"""

import asyncio
import logging
import random
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

import nats.errors
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription
from nats.js import JetStreamContext
from prometheus_client import Counter, Gauge

from headgate.common.bus.access import NatsAccess, TlsFiles
from headgate.common.bus.client import PARTING_S, PatientClient, TlsClient, close_client, explain, reason_of
from headgate.common.bus.direct import Receive
from headgate.common.bus.encoded import EncodedMessage
from headgate.common.bus.requests import Requests, TakeAnswer
from headgate.common.errors import SettingsError, StoreUnavailable
from headgate.common.service.tasks import cancel, heed_cancellation

_log = logging.getLogger(__name__)
_CONNECTED = Gauge("headgate_bus_connected", "1 while this process is connected to NATS")
_CONNECTIONS = Counter("headgate_bus_connections", "Connections made to NATS, the first included")

_FIRST_WAIT_S, _LAST_WAIT_S = 0.05, 2.0
PING_S, _PINGS_OUTSTANDING = 2, 2
"""A peer that is silent for about 6 s is taken for dead, and so is a client whose read loop ended by an exception."""
_SLOW_QUIET_S = 10.0
"""Between two log lines about dropped messages: one overflow is an error for each message."""
_WATCH_S = 0.5
_STUCK_S = 15.0
"""A client that was not connected for this long is made again, in case that its reconnecting died."""
_REFUSED = re.compile(r'permissions violation for (publish|subscription) to "([^"]*)"')
_SHOWN_TOKENS = 5
"""Of a refused subject, to tell one refusal from another: names of objects and consumers are behind these."""

Callback = Callable[[], Awaitable[None] | None]


class Bus:
    """A supervised client. Make one with `Bus.connect`."""

    def __init__(self, access: NatsAccess, name: str) -> None:
        self._access, self._name = access, name
        self._tls = TlsFiles(access.tls) if access.tls else None
        self._wait_s = _FIRST_WAIT_S
        self._client = PatientClient()
        self._js: JetStreamContext | None = None
        self._callbacks: list[Callback] = []
        self._disturbed: list[Callback] = []
        self._background: set[asyncio.Future[None]] = set()
        self._requests = Requests(self._client)
        self._supervisor: asyncio.Task[None] | None = None
        self._connected_once = asyncio.Event()
        self._is_closing = False
        self._has_parted = False
        """Whether the lost connection is closed, so that reconnecting has begun."""
        self._told_reasons: set[str] = set()
        """Of the outage under way; empty if there is none."""
        self._told_refusals: set[str] = set()
        self._slow_told = -_SLOW_QUIET_S

    @classmethod
    async def connect(cls, access: NatsAccess | str, *, name: str, wait_s: float | None = None) -> "Bus":
        """Return a bus, connected unless `wait_s` ran out.

        Args:
            access: where, and how to get in; a text is a URL, or several separated by commas.
            name: shown by NATS' monitoring.
            wait_s: seconds to wait for the connection; None waits for as long as it takes, 0 connects behind the
                scenes for a service that can begin without the bus.

        Raises:
            SettingsError: a file that is needed for TLS cannot be used.
        """
        bus = cls(NatsAccess(access) if isinstance(access, str) else access, name)
        bus._supervisor = asyncio.create_task(bus._supervise(), name="bus supervisor")
        try:
            async with asyncio.timeout(wait_s):
                await bus._connected_once.wait()
        except TimeoutError:
            _log.info("going on without NATS for now", extra={"nats": bus.address})
        except asyncio.CancelledError:
            await bus.close()
            raise
        return bus

    @property
    def nc(self) -> Client:
        """The client of now; another one after it was lost. Do not keep it."""
        return self._client

    @property
    def js(self) -> JetStreamContext:
        """JetStream on the client of now. Do not keep it."""
        if self._js is None:
            raise StoreUnavailable(f"not connected to NATS at {self.address}")
        return self._js

    @property
    def is_connected(self) -> bool:
        """Whether requests can be sent now."""
        return self._client.is_connected and not self._is_closing

    @property
    def address(self) -> str:
        """The servers as configured, without credentials."""
        return str(self._access)

    @property
    def cluster_size(self) -> int:
        """How many servers there are, as far as the settings name them or they tell of each other; at least 1."""
        return max(len(self._access.servers), len(self._client.discovered_servers))

    def readiness(self) -> str | None:
        """Readiness check for the admin site."""
        return None if self.is_connected else f"not connected to NATS at {self.address}"

    def on_reconnect(self, callback: Callback) -> Callable[[], None]:
        """Call back after every reconnection, also when the client was made again; return what undoes this."""
        return _register(self._callbacks, callback)

    def on_disturbance(self, callback: Callback) -> Callable[[], None]:
        """Call back whenever messages may have been lost: reconnections and slow-consumer errors."""
        return _register(self._disturbed, callback)

    async def request(
        self, subject: str, payload: bytes = b"", *, headers: Mapping[str, str] | None = None, timeout_s: float = 5.0
    ) -> Msg:
        """Ask and return the answer; fails as soon as the connection is lost, which nats-py's own request sits out.

        Raises:
            TimeoutError: no answer in time, or the connection was lost: it may or may not have been heard.
            nats.errors.Error: what nats-py says.
        """
        async with asyncio.timeout(timeout_s):
            return await self._requests.send(subject, payload, headers)

    async def request_many(
        self, subject: str, payload: bytes, take: TakeAnswer, *, timeout_s: float = 5.0
    ) -> Mapping[str, str]:
        """Ask what is answered by many messages, each of which is given to a function as it comes.

        Returns:
            The headers of the last message, which has a `Status` and is not given.

        Raises what `request` does; the messages that came before were given.
        """
        async with asyncio.timeout(timeout_s):
            return await self._requests.send_for_many(subject, payload, take)

    async def publish(self, subject: str, payload: bytes = b"", headers: Mapping[str, str] | None = None) -> None:
        """Publish without waiting for a listener.

        Raises:
            nats.errors.Error: what nats-py says.
        """
        await heed_cancellation(
            self._client.publish(subject, payload, headers=dict(headers) if headers is not None else None)
        )

    async def publish_encoded(self, messages: Sequence[EncodedMessage]) -> None:
        """Publish many messages in order without waiting for a listener.

        Raises:
            nats.errors.Error: what nats-py says; none of them is published.
        """
        await heed_cancellation(self._client.publish_encoded(messages))

    async def subscribe(
        self, subject: str, receive: Callable[[Msg], Awaitable[None]], *, messages: int, size: int, queue: str = ""
    ) -> Subscription:
        """Subscribe on the client of now; the subscription ends with it.

        Args:
            subject: pattern.
            receive: called for each message, in order.
            messages: most that wait for `receive`; what exceeds this is dropped, which is a disturbance.
            size: most bytes that wait.
            queue: of several subscribers with this name one gets each message; empty: all do.

        Raises:
            nats.errors.Error: what nats-py says.
        """
        return await heed_cancellation(
            self._client.subscribe(
                subject, queue=queue, cb=receive, pending_msgs_limit=messages, pending_bytes_limit=size
            )
        )

    async def subscribe_directly(self, subject: str, receive: Receive) -> Subscription:
        """Subscribe on the client of now, as `PatientClient.subscribe_directly` does.

        Raises:
            nats.errors.Error: what nats-py says.
        """
        return await heed_cancellation(self._client.subscribe_directly(subject, receive))

    async def listen(
        self, subject: str, receive: Callable[[Msg], Awaitable[None]], *, messages: int, size: int, queue: str = ""
    ) -> None:
        """Subscribe as `subscribe` does, and again on every client that takes the place of one; never returns."""
        connected = asyncio.Event()
        forget = self.on_reconnect(connected.set)
        try:
            while True:
                client = self._client
                connected.clear()
                try:
                    await self.subscribe(subject, receive, messages=messages, size=size, queue=queue)
                    while self._client is client:  # which subscribes again by itself when it reconnects
                        await connected.wait()
                        connected.clear()
                except nats.errors.Error as error:
                    _log.debug("no subscription yet", extra={"subject": subject, "reason": reason_of(error)})
                    await connected.wait()
        finally:
            forget()

    async def close(self) -> None:
        """Close for good."""
        self._is_closing = True
        if self._supervisor:
            await cancel(self._supervisor)
        if self._background:
            await cancel(*self._background)
        await close_client(self._client)

    async def _make_client(self) -> None:
        self._requests.end()
        client = TlsClient() if self._tls else PatientClient()
        self._client, self._js, self._requests = client, client.jetstream(), Requests(client)
        self._wait_s = _FIRST_WAIT_S

        async def report(error: Exception) -> None:
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                # nats-py lost it and would try for ever, after the client was closed too: see `heed_cancellation`.
                raise asyncio.CancelledError
            self._on_error(client, error)

        async def disconnected() -> None:
            if client is self._client and not self._is_closing:
                self._has_parted = True
                self._on_lost("the connection broke", "away")
                self._requests.end()

        async def reconnected() -> None:
            if client is self._client and not self._is_closing:
                self._on_connected()
            else:  # given up in the very turn in which it connected
                await client.close()

        await client.connect(
            self._access.servers,
            name=self._name,
            user=self._access.user or None,
            password=self._access.password or None,
            inbox_prefix=self._access.inbox,
            error_cb=report,
            disconnected_cb=disconnected,
            reconnected_cb=reconnected,
            closed_cb=_ignore,
            max_reconnect_attempts=-1,
            reconnect_time_wait=_FIRST_WAIT_S,  # type: ignore[arg-type]
            connect_timeout=2,
            ping_interval=PING_S,
            max_outstanding_pings=_PINGS_OUTSTANDING,
            pending_size=16 * 1024 * 1024,
            flush_timeout=5.0,
            **self._tls_options(),
        )

    def _tls_options(self) -> dict[str, Any]:
        if self._tls is None or self._access.tls is None:
            return {}
        name = self._access.tls.server_name
        return {"tls": self._tls.context(), **({"tls_hostname": name} if name else {})}

    def _on_error(self, client: Client, error: Exception) -> None:
        if isinstance(error, nats.errors.SlowConsumerError):
            self._on_slow()
            return
        if client is not self._client or self._is_closing:
            return
        if refused := _REFUSED.search(str(error)):
            self._on_refused(*refused.groups())
        elif not client.is_connected:
            self._back_off(client)
            self._on_lost(*explain(error, self._access.user))
        else:
            _log.debug("NATS reports an error", extra={"nats": self.address, "reason": reason_of(error)})

    def _on_refused(self, what: str, subject: str) -> None:
        if what == "publish":
            subject = self._requests.refuse(subject)
        kind = f"{what} {'.'.join(subject.split('.')[:_SHOWN_TOKENS])}"
        if kind not in self._told_refusals:
            self._told_refusals.add(kind)
            # The user of a certificate is known to the server alone.
            extra = {"what": what, "subject": subject, "user": self._access.user, "nats": self.address}
            _log.error("NATS does not permit this to our user", extra=extra)

    def _on_slow(self) -> None:
        now = asyncio.get_running_loop().time()
        if now - self._slow_told > _SLOW_QUIET_S:
            self._slow_told = now
            _log.warning("messages were dropped on our side: reading again")
        self._notify(self._disturbed)

    def _on_lost(self, reason: str, kind: str) -> None:
        _CONNECTED.set(0)
        # A server that refuses us also breaks the connection, which says less.
        if kind not in self._told_reasons and (kind != "away" or not self._told_reasons):
            self._told_reasons.add(kind)
            _log.warning("no connection to NATS, trying on", extra={"nats": self.address, "reason": reason})

    def _back_off(self, client: Client) -> None:
        # nats-py reads these options before each attempt; its own wait is one constant.
        self._wait_s = min(_LAST_WAIT_S, self._wait_s * 1.6)
        client.options["reconnect_time_wait"] = self._wait_s * random.uniform(0.5, 1.0)  # noqa: S311 - not a secret
        try:
            client.options.update(self._tls_options())
        except SettingsError as error:
            self._on_lost(str(error), "files")

    def _on_connected(self) -> None:
        self._settle()
        _CONNECTED.set(1)
        _CONNECTIONS.inc()
        self._connected_once.set()
        self._notify(self._callbacks)
        self._notify(self._disturbed)

    def _settle(self) -> None:
        self._wait_s = _FIRST_WAIT_S
        self._client.options["reconnect_time_wait"] = _FIRST_WAIT_S
        self._has_parted = False
        self._told_refusals.clear()  # a server that got new rights for our user has closed its connection
        if self._told_reasons:
            self._told_reasons.clear()
            _log.info("connected to NATS", extra={"nats": self.address})

    def _notify(self, callbacks: list[Callback]) -> None:
        for callback in tuple(callbacks):
            try:
                outcome = callback()
            except Exception:
                _log.exception("a callback of the bus failed")
                continue
            if outcome is not None:
                self._keep(asyncio.ensure_future(outcome))

    def _keep(self, task: "asyncio.Future[None]") -> None:
        self._background.add(task)
        task.add_done_callback(self._forget)

    def _forget(self, task: "asyncio.Future[None]") -> None:
        self._background.discard(task)
        if not task.cancelled() and (error := task.exception()):
            _log.error("a callback of the bus failed", exc_info=error)

    async def _supervise(self) -> None:
        loop = asyncio.get_running_loop()
        await self._renew()
        seen = loop.time()
        while True:
            await asyncio.sleep(_WATCH_S)
            if self._client.is_connected:
                seen = loop.time()
            elif self._client.is_closed or loop.time() - seen > (_STUCK_S if self._has_parted else PARTING_S):
                self._on_lost("the client was lost and is made again", "client")
                self._keep(asyncio.create_task(close_client(self._client), name="closing of a lost client"))
                await self._renew()
                seen = loop.time()

    async def _renew(self) -> None:
        try:
            async with asyncio.timeout(_STUCK_S):
                await heed_cancellation(self._make_client())
        except (TimeoutError, OSError, nats.errors.Error, SettingsError) as error:
            self._on_lost(*explain(error, self._access.user))
        if self._client.is_connected:
            self._on_connected()


async def _ignore() -> None:
    return


def _register(callbacks: list[Callback], callback: Callback) -> Callable[[], None]:
    callbacks.append(callback)

    def remove() -> None:
        if callback in callbacks:
            callbacks.remove(callback)

    return remove
