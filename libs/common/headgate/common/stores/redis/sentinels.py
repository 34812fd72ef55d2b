"""Asking the Sentinels which server is the primary.

All of them are asked at once and the newest answer counts, by the number of its failover (`config-epoch`): a Sentinel
that was cut off still names the primary of before. redis-py asks one after the other and takes the first answer.

The connections stay open, as every client asks every few seconds.
"""

import asyncio
from collections.abc import Sequence
from typing import NamedTuple

from headgate.common.errors import StoreError, StoreUnavailable
from headgate.common.stores.redis.target import Dial, RedisTarget, Server
from headgate.common.stores.redis.wire import Wire, ask_alone, dial, hang_up

ANSWER_S = 1.0
"""For one that is not reached, too: it must not keep the others from being heard."""


class _View(NamedTuple):
    """What one Sentinel says; the greatest is believed."""

    failovers: int
    is_up: bool
    primary: Server


class Sentinels:
    """The Sentinels of one service. Not safe for concurrent calls."""

    def __init__(self, target: RedisTarget, dial_by: Dial | None = None) -> None:
        self._service = target.service
        self._peers = [_Peer(target, server, dial_by) for server in target.servers]

    async def primary(self) -> Server:
        """Return the server that is the primary now.

        Raises:
            StoreUnavailable: no Sentinel answers, none knows the service, or the primary is down and no other chosen.
        """
        answers = await asyncio.gather(*(peer.ask(self._service) for peer in self._peers), return_exceptions=True)
        views = [answer for answer in answers if isinstance(answer, _View)]
        if not views:
            why = "; ".join(sorted({str(answer) for answer in answers if isinstance(answer, StoreError)}))
            raise StoreUnavailable(f"no Sentinel tells the primary of {self._service!r}: {why}")
        best = max(views)
        if not best.is_up:
            raise StoreUnavailable(f"the primary at {best.primary} is down, and no other is chosen yet")
        return best.primary

    async def close(self) -> None:
        """Hang up."""
        await asyncio.gather(*(peer.close() for peer in self._peers))


class _Peer:
    """One Sentinel, dialled again after every failure."""

    def __init__(self, target: RedisTarget, server: Server, dial_by: Dial | None) -> None:
        self._target = target
        self._dial_by = dial_by
        self._server = server
        self._wire: Wire | None = None

    async def ask(self, service: str) -> _View:
        try:
            async with asyncio.timeout(ANSWER_S):
                if self._wire is None:
                    login = self._target.sentinel_login
                    self._wire = await dial(self._target, self._server, login, dial_by=self._dial_by)
                return _read_view(await ask_alone(self._wire, ANSWER_S, "SENTINEL", "MASTER", service))
        except TimeoutError as error:
            await self.close()
            raise StoreUnavailable(f"{self._server} does not answer") from error
        except BaseException:
            await self.close()
            raise

    async def close(self) -> None:
        wire, self._wire = self._wire, None
        if wire is not None:
            await hang_up(wire)


def _read_view(answer: Sequence[bytes]) -> _View:
    """Read names and values in turn."""
    told = dict(zip(answer[::2], answer[1::2], strict=True))
    try:
        flags = told[b"flags"].decode().split(",")
        return _View(
            failovers=int(told[b"config-epoch"]),
            is_up=not {"s_down", "o_down"}.intersection(flags),
            primary=Server(told[b"ip"].decode(), int(told[b"port"])),
        )
    except (KeyError, ValueError) as error:
        raise StoreError(f"a Sentinel gave an answer that cannot be read: {error!r}") from error
