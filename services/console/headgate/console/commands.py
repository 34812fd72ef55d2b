"""Questions that the `headgate` command answers: about manifests that somebody drops in, and tables of the past.

Each is asked in a process of its own, one at a time, with bounds of time and memory: what somebody drops in can end
that process and nothing else, and the console's loop never waits for it.
"""

import asyncio
import json
import os
import resource
import signal
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from pydantic import SecretStr

from headgate.common.stores.settings import StoreSettings
from headgate.operations.errors import InvalidRequest, OperationError, StoresUnreachable

ANSWER_S: Final = 120.0
_CPU_S: Final = 120
MAX_MANIFESTS: Final = 2 * 1024 * 1024
"""Bytes of manifests that can be asked about."""
MEMORY_BYTES: Final = 4 * 1024**3
"""Of address space of a process that answers."""
NICENESS: Final = 10
"""Whatever else runs on the machine goes first."""
MAX_ANSWER: Final = 32 * 1024 * 1024
"""Bytes that a command may say: names of YAML that stand for long texts make much of a small file."""
_MAX_WAITING: Final = 4
_MAX_ERROR: Final = 2000
_PIECE: Final = 64 * 1024
_MANIFESTS: Final = "manifests.yaml"


class Commands:
    """The command line, as programs ask it.

    Args:
        settings: where the stores are.
        table: name of the table that is asked about.
    """

    def __init__(self, settings: StoreSettings, table: str) -> None:
        self._environment = _variables(settings)
        self._table = f"--table={table}"
        # In images nothing else can be written.
        self._folder = settings.data_dir.absolute() if os.access(settings.data_dir, os.W_OK) else None
        self._turn = asyncio.Lock()
        self._waiting = 0

    async def plan(self, manifests: bytes, cluster: str = "", *, prune: bool = False) -> dict[str, Any]:
        """Return what manifests would change if they were applied, as `headgate plan --json` says it.

        Raises:
            InvalidRequest: they cannot be read, or the cluster is not known.
            StoresUnreachable: there was no answer in time.
            OperationError: there is no command here.
        """
        flags = [*([f"--cluster={cluster}"] if cluster else ()), *(["--prune"] if prune else ())]
        return await self._ask(["plan", _MANIFESTS, *flags, self._table], manifests)

    async def audit(self, manifests: bytes) -> dict[str, Any]:
        """Return what becomes of each annotation and field, as `headgate audit --json` says it.

        Raises what `plan` does.
        """
        return await self._ask(["audit", _MANIFESTS], manifests)

    async def explain(
        self, method: str, url: str, headers: Sequence[tuple[str, str]], client: str, revision: str
    ) -> dict[str, Any]:
        """Return what would become of a request by a table of the past; raises what `plan` does."""
        words = ["explain", *(f"-H{name}: {value}" for name, value in headers), self._table]
        words += [f"--revision={revision}", *([f"--client={client}"] if client else ()), "--", method, url]
        return await self._ask(words)

    async def _ask(self, words: Sequence[str], manifests: bytes | None = None) -> dict[str, Any]:
        if find_spec("headgate.cli") is None:
            raise OperationError("the `headgate` command is not installed beside this console: ask it elsewhere")
        if manifests is not None and not manifests.strip():
            raise InvalidRequest("there are no manifests: give YAML or JSON")
        if manifests is not None and len(manifests) > MAX_MANIFESTS:
            raise InvalidRequest(f"the manifests have {len(manifests):,} bytes: at most {MAX_MANIFESTS:,}")
        if any("\0" in word for word in words):
            raise InvalidRequest("a value has a NUL in it")
        if self._waiting >= _MAX_WAITING:
            raise StoresUnreachable("others are asking such questions, which are answered one by one: ask again later")
        self._waiting += 1
        try:
            async with self._turn:
                # Hidden: a watcher of manifests may look at all that is around it, and would have them served.
                with tempfile.TemporaryDirectory(prefix=".console-", dir=self._folder) as folder:
                    if manifests is not None:
                        (Path(folder) / _MANIFESTS).write_bytes(manifests)
                    return await self._run(words, folder)
        finally:
            self._waiting -= 1

    async def _run(self, words: Sequence[str], folder: str) -> dict[str, Any]:
        # -P: what somebody drops in must not be imported in a module's place.
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-P", "-m", "headgate.cli", words[0], "--json", *words[1:]),
            cwd=folder,
            env=self._environment,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        try:
            bound(process.pid)
            async with asyncio.timeout(ANSWER_S):
                pipes = (process.stdout, process.stderr)
                said, errors = await asyncio.gather(*(_read_all(process, pipe) for pipe in pipes))
                await process.wait()
        except TimeoutError:
            raise StoresUnreachable(f"headgate {words[0]} took more than {ANSWER_S:g} s") from None
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        return _read(words[0], said, errors.decode(errors="replace"), process.returncode)


def bound(process_id: int) -> None:
    """Give a process of a command its bounds of memory and processor time, and the last place for both."""
    os.setpriority(os.PRIO_PROCESS, process_id, NICENESS)
    resource.prlimit(process_id, resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    resource.prlimit(process_id, resource.RLIMIT_CPU, (_CPU_S, _CPU_S))
    # Where memory runs out all the same, the process goes before the console.
    with suppress(OSError):
        Path(f"/proc/{process_id}/oom_score_adj").write_text("1000", encoding="ascii")


async def _read_all(process: asyncio.subprocess.Process, pipe: asyncio.StreamReader | None) -> bytes:
    """Return all that a process says. Raises InvalidRequest if that is too much; the process is ended then."""
    assert pipe is not None
    found = bytearray()
    while piece := await pipe.read(_PIECE):
        if len(found) <= MAX_ANSWER:
            found += piece
        elif process.returncode is None:
            process.kill()
    if len(found) > MAX_ANSWER:
        raise InvalidRequest(f"the answer has more than {MAX_ANSWER:,} bytes: ask about fewer objects at once")
    return bytes(found)


def _read(command: str, said: bytes, errors: str, code: int | None) -> dict[str, Any]:
    """Return the command's answer, whatever it thinks of it. Raises what `Commands.plan` does."""
    try:
        answer = json.loads(said)
    except ValueError:
        answer = None
    if isinstance(answer, dict):
        return answer
    lines = errors.strip().splitlines() or [f"headgate {command} ended with {code}"]
    told = lines[-1].removeprefix("headgate: ")[:_MAX_ERROR]
    if told == MemoryError.__name__ or code in (-signal.SIGXCPU, -signal.SIGKILL):
        raise InvalidRequest(
            f"headgate {command} needs more than {MEMORY_BYTES // 1024**3} GiB of memory or {_CPU_S} s of a processor "
            "for this: ask about fewer objects at once"
        )
    if code == 2:
        raise InvalidRequest(told)
    if code == 3:
        raise StoresUnreachable(told)
    raise OperationError(told)


def _variables(settings: StoreSettings) -> dict[str, str]:
    """Return the environment of a command that asks the stores that these settings say."""
    # The file of settings is the console's: commands would refuse what it says of the console. All else of it is here.
    said: Mapping[str, Any] = {name: getattr(settings, name) for name in StoreSettings.model_fields if name != "config"}
    inherited = {name: value for name, value in os.environ.items() if name.upper() != "HEADGATE_CONFIG"}
    given = {name: value for name, value in said.items() if name in settings.model_fields_set and value is not None}
    # Not as a flag: it may have a password in it, and everybody on the machine can read flags.
    given["nats_url"] = settings.nats_url
    return {**inherited, **{f"HEADGATE_{name.upper()}": _written(value) for name, value in given.items()}}


def _written(value: Any) -> str:
    match value:
        case SecretStr():
            return value.get_secret_value()
        case Path():
            return str(value.absolute())  # the command runs in a folder of its own
        case bool():
            return str(value).lower()
        case _:
            return str(value)
