"""The connection to Redis that never gives up.

It finds the primary (itself, or by asking the Sentinels), makes sure that it is one, and goes on looking every two
seconds: a primary that was demoted or replaced, or a peer that fell silent, is left. Waits between attempts grow from
50 ms to 1 s with jitter, and each outage is two lines in the log.
"""

import asyncio
import hashlib
import logging
import random
import re
from collections.abc import Callable, Sequence
from typing import Any

from prometheus_client import Counter, Gauge
from redis.exceptions import NoScriptError, ReadOnlyError, ResponseError

from headgate.common.errors import NotPermitted, StoreError, StoreUnavailable
from headgate.common.service.tasks import cancel, run_together
from headgate.common.stores.redis.sentinels import Sentinels
from headgate.common.stores.redis.target import Dial, RedisTarget, Server
from headgate.common.stores.redis.wire import Pipe, Wire, Word, dial, reason_of, refusal

_log = logging.getLogger(__name__)
_CONNECTED = Gauge("headgate_store_connected", "1 while this process is connected to the Redis primary")
_CONNECTIONS = Counter("headgate_store_connections", "Connections made to a Redis primary, the first included")

_FIRST_WAIT_S, _LAST_WAIT_S = 0.05, 1.0
LOOK_S = 2.0
_HISTORY = re.compile(rb"^master_replid:([0-9a-f]+)", re.MULTILINE)
_ROLE = re.compile(rb"^role:(\w+)", re.MULTILINE)


class Script:
    """A Lua script, which the server runs as one step.

    Sent by its digest; a server that does not know it yet, as after a restart, is sent the text.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self.digest = hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest()


class RedisLink:
    """A supervised connection. Make one with `RedisLink.connect`."""

    def __init__(self, target: RedisTarget, name: str, *, is_store: bool, dial_by: Dial | None) -> None:
        self._target = target
        self._name = name
        self._is_store = is_store
        self._dial_by = dial_by
        self._sentinels = Sentinels(target, dial_by) if target.service else None
        self._pipe: Pipe | None = None
        self._primary: Server | None = None
        self._callbacks: list[Callable[[], None]] = []
        self._supervisor: asyncio.Task[None] | None = None
        self._connected_once = asyncio.Event()
        self._wait_s = _FIRST_WAIT_S
        self._lost_because = "not connected yet"
        self._is_outage_told = False
        self._demoted = asyncio.Event()
        self._told: set[str] = set()
        """What was said to be not permitted."""
        self.session = 0
        """Counts connections: a task that keeps one of its own gives it up when this changes."""
        self.history = ""
        """The primary's replication id: another one after each failover or restart, which may have lost writes."""

    @classmethod
    async def connect(
        cls,
        target: RedisTarget,
        *,
        name: str,
        wait_s: float | None = None,
        is_store: bool = True,
        dial_by: Dial | None = None,
    ) -> "RedisLink":
        """Return a link, connected unless `wait_s` ran out.

        Args:
            target: where Redis is.
            name: shown by `CLIENT LIST`.
            wait_s: seconds to wait for the connection; None waits for as long as it takes.
            is_store: the metrics of the store are about this link.
            dial_by: connects its sockets; by default redis-py does.
        """
        link = cls(target, name, is_store=is_store, dial_by=dial_by)
        link._supervisor = asyncio.create_task(link._supervise(), name="redis supervisor")
        try:
            async with asyncio.timeout(wait_s):
                await link._connected_once.wait()
        except TimeoutError:
            _log.info("going on without Redis for now", extra={"redis": link.address})
        except asyncio.CancelledError:
            await link.close()
            raise
        return link

    @property
    def is_connected(self) -> bool:
        """Whether commands can be sent now."""
        return self._pipe is not None

    @property
    def primary(self) -> Server | None:
        """The server that it is connected to."""
        return self._primary

    @property
    def address(self) -> str:
        """The servers as configured, without credentials."""
        return str(self._target)

    def readiness(self) -> str | None:
        """Readiness check for the admin site."""
        return None if self.is_connected else f"not connected to Redis at {self.address}: {self._lost_because}"

    def on_disturbance(self, callback: Callable[[], None]) -> Callable[[], None]:
        """Call back whenever what was read may be out of date: after reconnecting; return what undoes this."""
        self._callbacks.append(callback)

        def remove() -> None:
            if callback in self._callbacks:
                self._callbacks.remove(callback)

        return remove

    async def ask(self, *words: Word) -> Any:
        """Send a command and return the answer, texts as bytes. Cancelling the caller cancels no command.

        Raises:
            StoreUnavailable: not connected, or the connection broke: it may or may not have been carried out.
            StoreError: refused.
        """
        try:
            return await self._connected_pipe().ask(*words)
        except ResponseError as error:
            raise self._refused(error) from error

    async def run(self, script: Script, keys: Sequence[str], *arguments: Word) -> Any:
        """Run a script and return what it returns.

        Raises:
            StoreUnavailable: not connected, or the connection broke: it was carried out as a whole or not at all.
            StoreError: refused.
        """
        pipe = self._connected_pipe()
        try:
            try:
                return await pipe.ask("EVALSHA", script.digest, len(keys), *keys, *arguments)
            except NoScriptError:
                return await pipe.ask("EVAL", script.text, len(keys), *keys, *arguments)
        except ResponseError as error:
            raise self._refused(error) from error

    def _connected_pipe(self) -> Pipe:
        if self._pipe is None:
            raise StoreUnavailable(f"not connected to Redis at {self.address}: {self._lost_because}")
        return self._pipe

    def _refused(self, error: ResponseError) -> StoreError:
        if isinstance(error, ReadOnlyError):
            self._demoted.set()
        refused = refusal(error)
        if isinstance(refused, NotPermitted) and str(refused) not in self._told:
            self._told.add(str(refused))  # few: what is asked is always the same
            _log.error("Redis does not permit what is needed", extra={"redis": self.address, "reason": str(refused)})
        return refused

    async def dial(self) -> Wire:
        """Open a further connection to the primary of now, for commands that block; the caller hangs up.

        Raises:
            StoreUnavailable: not now.
        """
        if self._primary is None:
            raise StoreUnavailable(f"not connected to Redis at {self.address}")
        return await self._dial(self._primary)

    async def _dial(self, server: Server) -> Wire:
        target = self._target
        return await dial(
            target, server, target.login, name=self._name, database=target.database, dial_by=self._dial_by
        )

    async def close(self) -> None:
        """Close for good."""
        if self._supervisor is not None:
            await cancel(self._supervisor)
        if self._sentinels is not None:
            await self._sentinels.close()

    async def _supervise(self) -> None:
        while True:
            try:
                await self._serve()
            except StoreError as error:
                self._on_lost(str(error))
            except Exception as error:
                # A mistake of ours or of redis-py must not be the end of reconnecting.
                _log.exception("the link to Redis failed in a way that was not foreseen")
                self._on_lost(reason_of(error))
            await asyncio.sleep(self._wait_s * random.uniform(0.5, 1.0))  # noqa: S311 - not a secret
            self._wait_s = min(_LAST_WAIT_S, self._wait_s * 1.6)

    async def _serve(self) -> None:
        """Connect, and carry commands until the connection is lost, which raises."""
        server = await self._locate()
        self._demoted = asyncio.Event()
        pipe = Pipe(await self._dial(server))
        try:
            await run_together(pipe.run(), self._keep(pipe, server))
        finally:
            self._pipe = self._primary = None

    async def _locate(self) -> Server:
        return await self._sentinels.primary() if self._sentinels is not None else self._target.servers[0]

    async def _keep(self, pipe: Pipe, server: Server) -> None:
        self.history = await _history_of(pipe, server)
        self._pipe, self._primary = pipe, server
        self._on_connected()
        while True:
            try:
                async with asyncio.timeout(LOOK_S):
                    await self._demoted.wait()
            except TimeoutError:
                await self._look(pipe, server)
            else:
                raise StoreUnavailable(f"{server} is not the primary any more")

    async def _look(self, pipe: Pipe, server: Server) -> None:
        """Make sure that this is still the primary, which keeps the connection from being idle, too."""
        history = await _history_of(pipe, server)
        if history != self.history:
            self.history = history
            self._notify()
        if self._sentinels is None:
            return
        try:
            primary = await self._sentinels.primary()
        except StoreUnavailable as error:
            # Not a reason to leave a primary that answers.
            _log.debug("the Sentinels do not confirm the primary", extra={"reason": str(error)})
            return
        if primary != server:
            raise StoreUnavailable(f"{server} is not the primary any more, {primary} is")

    def _on_connected(self) -> None:
        self.session += 1
        self._wait_s = _FIRST_WAIT_S
        if self._is_store:
            _CONNECTED.set(1)
            _CONNECTIONS.inc()
        if self._is_outage_told:
            self._is_outage_told = False
            _log.info("connected to Redis", extra={"redis": self.address, "primary": str(self._primary)})
        self._connected_once.set()
        self._notify()

    def _on_lost(self, reason: str) -> None:
        if self._is_store:
            _CONNECTED.set(0)
        self._lost_because = reason
        if not self._is_outage_told:
            self._is_outage_told = True
            _log.warning("no connection to Redis, trying on", extra={"redis": self.address, "reason": reason})

    def _notify(self) -> None:
        for callback in tuple(self._callbacks):
            callback()


async def _history_of(pipe: Pipe, server: Server) -> str:
    try:
        told = await pipe.ask("INFO", "replication")
    except ResponseError as error:
        raise refusal(error) from error
    role, history = _ROLE.search(told), _HISTORY.search(told)
    if role is None or history is None:
        raise StoreUnavailable(f"{server} does not tell its role")
    if role[1] != b"master":
        raise StoreUnavailable(f"{server} is a replica; the store needs the primary")
    return history[1].decode()
