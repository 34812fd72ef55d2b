"""What clients and gateways tell, and what is wrong with it."""

import asyncio
import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import aiohttp

from fakes.gateway.table_on_disk import content_on_disk
from faults.desired import GENERATION, Desired
from faults.ratchet import Ratchet
from faults.recorded_log import RecordedLog, digest_of
from headgate.common.snapshot import Version, decode_chunk
from headgate.common.table import TableEntry, entry_key, entry_kind
from headgate.gateway.following.last_good import StoredTable, read_last_good
from headgate.translator.offline import translate_all

PAUSE_S = 0.03
"""Between two requests of a client."""
LOOK_S = 0.2
PATIENCE_S = 10.0
CLIENTS = 2
"""At each gateway."""


class Door(NamedTuple):
    """How a gateway is reached, and where it keeps its table."""

    name: str
    http_port: int
    admin_port: int
    table_file: Path


class Table(NamedTuple):
    """A table that a gateway was found to serve."""

    gateway: str
    version: Version
    inputs: Mapping[str, int]
    digest: str

    @classmethod
    def of(cls, gateway: str, stored: StoredTable) -> "Table":
        manifest = stored.manifest
        return cls(gateway, manifest.version, manifest.inputs, digest_of(manifest.chunks))


class Observed:
    """Judges everything as it comes; `wrong` is what must not have been."""

    def __init__(self, desired: Sequence[Desired], log: RecordedLog, clock: Callable[[], float]) -> None:
        self.wrong: list[str] = []
        self.answers = Counter[str]()
        self.excused = 0
        self._desired = desired
        self._log = log
        self._clock = clock
        self._generations: defaultdict[tuple[str, str], Ratchet[int]] = defaultdict(Ratchet)
        self._versions: defaultdict[str, Ratchet[tuple[int, int]]] = defaultdict(Ratchet)
        self._digests: dict[Version, str] = {}
        self._unchecked: dict[tuple[Version, str], Table] = {}
        self._broken: set[str] = set()
        self._lives: Counter[str] = Counter()
        self.tables_checked = 0

    # What happens to gateways

    def break_gateway(self, name: str) -> None:
        """From now on requests may fail at a gateway, as the gateway itself is what breaks."""
        self._broken.add(name)
        self._lives[name] += 1

    def restart_gateway(self, name: str) -> None:
        """The gateway is killed now."""
        now = self._clock()
        self._versions[name].restart(now)
        for (gateway, _), ratchet in self._generations.items():
            if gateway == name:
                ratchet.restart(now)

    def mend_gateway(self, name: str) -> None:
        """From now on no request may fail any more."""
        self._broken.discard(name)
        self._lives[name] += 1

    # What clients say

    def asks(self, gateway: str, host: str) -> "Question":
        """Begin a request."""
        ratchet = self._generations[gateway, host]
        return Question(gateway, host, self._clock(), self._lives[gateway], ratchet.life, ratchet.highest or 0)

    def answered(self, question: "Question", status: int, generation: int, detail: str) -> None:
        """End a request; status 0 is none at all."""
        gateway, host = question.gateway, question.host
        if status != 200:
            if gateway in self._broken or self._lives[gateway] != question.life:
                self.excused += 1
            else:
                took_s = self._clock() - question.at
                self.complain(f"{gateway} {host}: {status} {detail} after {took_s:.2f} s")
            return
        self.answers[gateway] += 1
        ratchet = self._generations[gateway, host]
        if ratchet.life != question.ratchet_life:
            return
        if generation < question.floor:
            self.complain(f"{gateway} {host}: generation {generation} after {question.floor}")
        [wanted] = [each.generations[host] for each in self._desired if host in each.generations]
        if generation > wanted:
            self.complain(f"{gateway} {host}: generation {generation}, of which nobody has heard")
        ratchet.take(self._clock(), max(generation, ratchet.highest or 0))

    def has_current_generations(self, gateway: str) -> bool:
        """Whether the last answers of all hosts are of the present generation."""
        return all(
            self._generations[gateway, host].highest == generation
            for desired in self._desired
            for host, generation in desired.generations.items()
        )

    # What gateways say

    def serves(self, gateway: str, version: Version) -> None:
        """Note which version a gateway says that it serves."""
        ratchet = self._versions[gateway]
        if not ratchet.take(self._clock(), (version.epoch, version.revision)):
            self.complain(f"{gateway}: version {version} after {ratchet.highest}")

    def stored(self, table: Table) -> None:
        """Note a table that a gateway has on its disk."""
        known = self._digests.setdefault(table.version, table.digest)
        if known != table.digest:
            self.complain(f"{table.gateway}: version {table.version} stands for two tables")
        self._unchecked[table.version, table.digest] = table

    def check_tables(self) -> None:
        """Compare all tables that were found with what the log said."""
        for table in self._unchecked.values():
            self.tables_checked += 1
            made = list(self._log.digests(table.inputs))
            if table.digest not in made:
                self.complain(
                    f"{table.gateway}: table {table.version} is no translation of the log at {dict(table.inputs)} "
                    f"({len(made)} logs go so far)"
                )
        self._unchecked.clear()

    def life(self, gateway: str) -> int:
        """Return a number that changes whenever a gateway breaks or is mended."""
        return self._lives[gateway]

    @property
    def inputs(self) -> Sequence[Mapping[str, int]]:
        """Of all tables that are not checked yet."""
        return [table.inputs for table in self._unchecked.values()]

    def complain(self, text: str) -> None:
        """Note something that must not have been."""
        self.wrong.append(f"{self._clock():.2f} s: {text}")


class Question(NamedTuple):
    """A request that is not answered yet."""

    gateway: str
    host: str
    at: float
    life: int
    ratchet_life: int
    floor: int
    """The greatest generation that was seen before it began."""


async def ask_for_ever(door: Door, hosts: Sequence[str], observed: Observed) -> None:
    """Be a client of one gateway with a connection that it keeps."""
    timeout = aiohttp.ClientTimeout(total=PATIENCE_S)
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=1), timeout=timeout) as session:
        while True:
            for host in hosts:
                await _ask(session, door, host, observed)
                await asyncio.sleep(PAUSE_S)


async def _ask(session: aiohttp.ClientSession, door: Door, host: str, observed: Observed) -> None:
    question = observed.asks(door.name, host)
    try:
        async with session.get(f"http://127.0.0.1:{door.http_port}/", headers={"Host": host}) as answer:
            body = await answer.read()
            detail = f"{answer.headers.get('x-headgate-reason', '')} {body[:80]!r}"
            observed.answered(question, answer.status, int(answer.headers.get(GENERATION, 0)), detail)
    except (aiohttp.ClientError, TimeoutError) as error:
        observed.answered(question, 0, 0, f"{type(error).__name__}: {error}")


async def look_for_ever(door: Door, observed: Observed) -> None:
    """Look again and again at what a gateway says that it serves, and at what it has on its disk."""
    timeout = aiohttp.ClientTimeout(total=1.0)
    seen = 0
    async with aiohttp.ClientSession(timeout=timeout) as session:
        while True:
            await asyncio.sleep(LOOK_S)
            life = observed.life(door.name)
            version = await read_version(session, door.admin_port)
            if version is not None and observed.life(door.name) == life:
                observed.serves(door.name, version)
            changed = door.table_file.stat().st_mtime_ns if door.table_file.exists() else 0
            if changed != seen and (stored := read_last_good(door.table_file)) is not None:
                seen = changed
                observed.stored(Table.of(door.name, stored))


async def read_version(session: aiohttp.ClientSession, port: int) -> Version | None:
    """Return what `/version` of an admin site says."""
    try:
        async with session.get(f"http://127.0.0.1:{port}/version") as answer:
            label = (await answer.json())["version"]
    except (aiohttp.ClientError, TimeoutError, json.JSONDecodeError):
        return None
    return Version(*map(int, label.split("."))) if label else None


def differences(door: Door, desired: Sequence[Desired]) -> list[str]:
    """Compare what a gateway has on its disk with what the API servers want; return the keys that differ.

    The resourceVersions of provenance are left out: a status that is written changes them, and no table.
    """
    stored = read_last_good(door.table_file)
    if stored is None:
        return ["no table"]
    chunks = stored.manifest.chunks
    served = _by_key(entry for chunk in chunks for entry in decode_chunk(chunk.kind, content_on_disk(stored, chunk)))
    wanted = _by_key(translate_all(delta for each in desired for delta in each.deltas()).entries)
    return sorted(key for key in served.keys() | wanted.keys() if served.get(key) != wanted.get(key))


def _by_key(entries: Iterable[TableEntry]) -> Mapping[str, object]:
    return {f"{entry_kind(entry)} {entry_key(entry)}": _comparable(entry.model_dump(mode="json")) for entry in entries}


def _comparable(value: object) -> object:
    if isinstance(value, dict):
        return {name: _comparable(each) for name, each in value.items() if name != "resource_version"}
    return [_comparable(each) for each in value] if isinstance(value, list) else value
