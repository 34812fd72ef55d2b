"""Addresses of endpoints that are DNS names, kept fresh in the background: no request waits for a resolver.

Answers are asked for again when their TTL is over (or `resolve_s`, if that is shorter), A and AAAA apart. The last good
answer is kept while resolving fails, whatever the failure: a name server that is away must not take an upstream away.

dnspython and not c-ares: c-ares caches answers inside, where its Python binding cannot reach, so that `resolve_s` could
not hold; and dnspython needs no thread of its own. `getaddrinfo` tells no TTL.
"""

import asyncio
import logging
import math
import random
import socket
from collections.abc import Awaitable, Callable, Sequence
from itertools import chain, zip_longest
from typing import Final, Literal, NamedTuple

import dns.asyncresolver
import dns.exception
import dns.name

from headgate.gateway.health.stats import HealthStats

_log = logging.getLogger(__name__)

Family = Literal["A", "AAAA"]
FAMILIES: Final[tuple[Family, ...]] = ("AAAA", "A")
_LOOPBACK: Final[dict[Family, str]] = {"AAAA": "::1", "A": "127.0.0.1"}
"""What `localhost` is, whatever a name server says (RFC 6761 section 6.3)."""
LIFETIME_S: Final = 5.0
"""For one question, over all name servers."""
SHORTEST_S: Final = 1.0
"""Between two questions for a name, whatever its TTL."""
LONGEST_PAUSE_S: Final = 30.0
"""Between two questions that fail; the pause begins at `SHORTEST_S` and doubles."""
AT_ONCE: Final = 64
"""Names that are being asked for at a time."""
SLOW_AT_ONCE: Final = 16
"""Names that are being asked for besides, as their last answer came late or not at all: they keep no others waiting."""
SLOW_S: Final = 1.0
MAX_ADDRESSES: Final = 128
"""Of one family that a name may have; further ones are left out."""


class Answer(NamedTuple):
    """Addresses of one family, and for how many seconds they hold. There may be none."""

    addresses: tuple[str, ...]
    ttl_s: float


class ResolutionFailed(Exception):
    """A name server said no, or nothing."""


Query = Callable[[str, Family], Awaitable[Answer]]
"""Asks for one family; raises ResolutionFailed."""
OnChange = Callable[[str], None]
"""Called with a name whose addresses changed."""


class SystemDns:
    """Asks the name servers of a resolv.conf.

    A name with a dot in it is absolute, as the target of an ExternalName Service is, so that `ndots:5` does not make
    five questions of one. A single label goes through the search list.

    Args:
        resolver: a configured resolver; by default by /etc/resolv.conf, read when it is first needed.
    """

    def __init__(self, resolver: dns.asyncresolver.Resolver | None = None) -> None:
        self._resolver = resolver

    async def __call__(self, name: str, family: Family) -> Answer:
        """Ask for a name's addresses of one family; raises ResolutionFailed."""
        if name == "localhost" or name.endswith(".localhost"):
            return Answer((_LOOPBACK[family],), math.inf)
        try:
            if self._resolver is None:
                self._resolver = dns.asyncresolver.Resolver()
            answer = await self._resolver.resolve(
                name, family, search="." not in name, lifetime=LIFETIME_S, raise_on_no_answer=False
            )
        except dns.exception.DNSException as error:
            raise ResolutionFailed(str(error)) from error
        except (OSError, UnicodeError) as error:
            raise ResolutionFailed(f"{name}: {error}") from error
        chain_ttl_s = answer.chaining_result.minimum_ttl
        return Answer(tuple(record.to_text() for record in answer.rrset or ()), float(chain_ttl_s))


def has_route(address: str) -> bool:
    """Whether the host could send to an address; nothing is sent."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.connect((address, 9))
    except OSError:
        return False
    return True


def in_order(addresses: Sequence[str], is_routable: Callable[[str], bool] = has_route) -> tuple[str, ...]:
    """Put addresses into the order in which connections should be tried: IPv6 and IPv4 in turn (RFC 8305 section 4).

    Families that the host has no route for are left out, unless nothing would remain. Within a family the order is
    fixed, so that answers that rotate are not taken for changes.
    """
    usable = [address for address in addresses if is_routable(address)] or list(addresses)
    later = sorted(address for address in usable if ":" not in address)
    first = sorted(address for address in usable if ":" in address)
    return tuple(address for address in chain.from_iterable(zip_longest(first, later)) if address is not None)


class _Name:
    """A name that is kept fresh."""

    __slots__ = ("addresses", "bounds_s", "by_family", "problem", "task")

    def __init__(self) -> None:
        self.addresses: tuple[str, ...] = ()
        self.by_family: dict[Family, tuple[str, ...]] = {}
        self.problem = ""
        """What the last question failed with; empty before the first."""
        self.bounds_s: list[float | None] = []
        """`resolve_s` of each who follows the name."""
        self.task: asyncio.Task[None] | None = None

    @property
    def bound_s(self) -> float:
        return min((bound for bound in self.bounds_s if bound is not None), default=float("inf"))


class Resolver:
    """The names of one worker's endpoints. Made and used on its event loop.

    Args:
        query: asks for addresses.
        stats: where resolutions are counted.
        on_change: told of each name whose addresses changed, its first answer included, and of each for whose having
            none there is another reason; may be set later.
        is_routable: which addresses can be used.
    """

    def __init__(
        self,
        query: Query,
        stats: HealthStats,
        on_change: OnChange = lambda name: None,
        is_routable: Callable[[str], bool] = has_route,
    ) -> None:
        self.on_change = on_change
        self._query = query
        self._stats = stats
        self._is_routable = is_routable
        self._names: dict[str, _Name] = {}
        self._turns = asyncio.Semaphore(AT_ONCE)
        self._slow_turns = asyncio.Semaphore(SLOW_AT_ONCE)

    def __len__(self) -> int:
        return len(self._names)

    def addresses(self, name: str) -> tuple[str, ...]:
        """Return the addresses of a name that is followed, in the order to try; none before the first answer."""
        known = self._names.get(name)
        return known.addresses if known is not None else ()

    def problem(self, name: str) -> str:
        """Say why a name has no addresses; empty if it has some."""
        known = self._names.get(name)
        if known is not None and known.addresses:
            return ""
        if known is None or not known.problem:
            return f"{name} is not resolved yet"
        return f"{name} cannot be resolved: {known.problem}"

    def follow(self, name: str, resolve_s: float | None = None) -> None:
        """Keep a name fresh from now on, its addresses never older than `resolve_s` seconds if resolving works.

        Each call is to be paired with an `unfollow` with the same arguments.
        """
        known = self._names.get(name)
        if known is None:
            known = self._names[name] = _Name()
        bound_before_s = known.bound_s
        known.bounds_s.append(resolve_s)
        if known.task is None or known.bound_s < bound_before_s:
            self._restart(name, known)

    def unfollow(self, name: str, resolve_s: float | None = None) -> None:
        """Undo a `follow`; the last one ends the resolving."""
        known = self._names[name]
        known.bounds_s.remove(resolve_s)
        if not known.bounds_s:
            del self._names[name]
            if known.task is not None:
                known.task.cancel()

    async def close(self) -> None:
        """Stop resolving."""
        tasks = [known.task for known in self._names.values() if known.task is not None]
        self._names.clear()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _restart(self, name: str, known: _Name) -> None:
        if known.task is not None:
            known.task.cancel()
        known.task = asyncio.create_task(self._keep_fresh(name, known))

    async def _keep_fresh(self, name: str, known: _Name) -> None:
        loop, turns = asyncio.get_running_loop(), self._turns
        failures = 0
        while True:
            ttl_s = None
            try:
                async with turns:
                    began = loop.time()
                    ttl_s = await self._refresh(name, known)
                    turns = self._turns if loop.time() - began < SLOW_S else self._slow_turns
            except Exception:
                # Whatever it is, a name that is never asked for again would send requests to where nobody is any more.
                _log.exception("resolving a name failed", extra={"name_asked": name})
            if ttl_s is None:
                pause_s = min(SHORTEST_S * 2**failures, LONGEST_PAUSE_S)
                failures = min(failures + 1, 10)
            else:
                failures, pause_s = 0, max(SHORTEST_S, min(ttl_s, known.bound_s))
            # A little early rather than late, and not all at once.
            await asyncio.sleep(pause_s * random.uniform(0.9, 1.0))  # noqa: S311 - spreads load, guards nothing

    async def _refresh(self, name: str, known: _Name) -> float | None:
        """Ask once; return for how long the answer holds, None if there is none."""
        results = await asyncio.gather(*(self._query(name, family) for family in FAMILIES), return_exceptions=True)
        found, ttls_s, problems = dict(known.by_family), [], []
        for family, result in zip(FAMILIES, results, strict=True):
            if isinstance(result, Answer):
                found[family] = tuple(sorted(result.addresses)[:MAX_ADDRESSES])
                if result.addresses:
                    ttls_s.append(result.ttl_s)
            elif isinstance(result, ResolutionFailed):
                problems.append(str(result))
            else:
                raise result
        if not ttls_s:
            self._stats.resolutions["failure"] += 1
            problem = "; ".join(dict.fromkeys(problems)) or "no addresses"
            _log.warning("a name cannot be resolved", extra={"name_asked": name, "error": problem})
            is_news, known.problem = problem != known.problem, problem
            if is_news and not known.addresses:
                self.on_change(name)
            return None
        self._stats.resolutions["success"] += 1
        known.by_family = found
        addresses = in_order([address for family in FAMILIES for address in found.get(family, ())], self._is_routable)
        if addresses != known.addresses:
            known.addresses = addresses
            self.on_change(name)
        return min(ttls_s)
