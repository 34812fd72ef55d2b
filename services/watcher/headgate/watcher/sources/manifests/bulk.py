"""Many files of manifests, read by several processes: parsing YAML is by far the most work of a start from files.

Each process gets the names of some files and answers with their objects in JSON. It is a program of its own and no
fork, as the watcher has threads; it ends when its input does, and so with the watcher.

Rejected: faster parsers of YAML 1.2. They read `yes`, `0777` and `1:30` otherwise than kubectl does, and take a key
that stands twice.
"""

import logging
import os
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from typing import IO

import msgspec

from headgate.common.problems import Problem
from headgate.common.resources import ALL_KINDS, ObjectRef
from headgate.watcher.sources.manifests.folders import Signature, read_bytes
from headgate.watcher.sources.manifests.objects import Versioner
from headgate.watcher.sources.manifests.reader import FileObject, FileProblem, ManifestRead, read_manifest

BULK_BYTES = 8 * 1024 * 1024
"""Files that are smaller together are read in the watcher itself, sooner than a process starts."""
TASK_BYTES = 1024 * 1024
"""Of the files that a process gets at a time: about 0.1 s of work."""
MOST_PROCESSES = 8
_NICENESS = 10
"""Of the processes: a gateway beside them, which serves what it knew before a restart, goes first."""
_LENGTH_BYTES = 4

_log = logging.getLogger(__name__)


class FileContent(msgspec.Struct, array_like=True):
    """What a process found in a file; nothing where it could not be read."""

    file: str
    signature: Signature | None = None
    objects: list[tuple[int, str, str, str, str, bytes, int, bool]] = []
    """Place of the kind among those that are read, namespace, name, and of the `FileObject` uid, version, content,
    line, whether it is ready."""
    problems: list[tuple[int, str, dict[str, object]]] = []
    """Line, object, problem."""

    @classmethod
    def of(cls, file: str, signature: Signature, read: ManifestRead) -> "FileContent":
        """Take what was read."""
        objects = [
            (
                *(_PLACES[one.kind], one.ref.namespace, one.ref.name),
                *(one.uid, one.version, one.content, one.line, one.is_ready),
            )
            for one in read.objects
        ]
        problems = [(one.line, one.object, one.problem.model_dump(mode="json")) for one in read.problems]
        return cls(file, signature, objects, problems)

    def as_read(self, cluster: str) -> ManifestRead:
        """Return it as `read_manifest` does, but for what is passed over."""
        objects = []
        for place, namespace, name, uid, version, content, line, is_ready in self.objects:
            kind = _KINDS[place]
            ref = ObjectRef(cluster, kind.group, kind.resource, sys.intern(namespace), name)
            objects.append(FileObject(kind, ref, uid, version, content, self.file, line, is_ready))
        problems = [
            FileProblem(self.file, line, about, Problem.model_validate(problem))
            for line, about, problem in self.problems
        ]
        return ManifestRead(tuple(objects), tuple(problems))


class _Settings(msgspec.Struct, array_like=True):
    """What a process gets first: not as arguments, which every user of the machine can read."""

    cluster: str
    key: bytes


_KINDS = ALL_KINDS.readable
_PLACES = {kind: place for place, kind in enumerate(_KINDS)}
_decode_contents = msgspec.msgpack.Decoder(list[FileContent]).decode


def is_bulk(sizes: Iterable[int]) -> bool:
    """Whether files of these sizes are worth processes of their own."""
    return (os.cpu_count() or 1) > 1 and sum(sizes) > BULK_BYTES


class BulkReader:
    """Reads files in their order, in as many processes as there are cores."""

    def __init__(self, versioner: Versioner) -> None:
        """Start the processes.

        Raises:
            OSError: there may be no more of them.
        """
        command = [sys.executable, "-P", "-m", __name__]
        self._processes: list[subprocess.Popen[bytes]] = []
        try:
            for _ in range(min(MOST_PROCESSES, os.cpu_count() or 1)):
                started = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)  # noqa: S603
                self._processes.append(started)
                _send(started.stdin, _Settings(versioner.cluster, versioner.key))
        except OSError:
            self.close()
            raise

    def read(self, files: Sequence[tuple[str, int]]) -> Iterator[list[FileContent]]:
        """Yield what is in files, some at a time, in order.

        Args:
            files: names and sizes in bytes.

        Raises:
            EOFError: a process ended.
            OSError: likewise.
        """
        tasks = list(_tasks(files))
        count = len(self._processes)
        for task, process in zip(tasks, self._processes, strict=False):
            _send(process.stdin, task)
        for place in range(len(tasks)):
            process = self._processes[place % count]
            found = _decode_contents(_receive(process.stdout))
            # Only now, when it waits for it: neither ever waits for the other to read.
            if place + count < len(tasks):
                _send(process.stdin, tasks[place + count])
            yield found

    def kill(self) -> None:
        """End the processes, whatever they do; `read` in another thread then finds that they ended."""
        for process in self._processes:
            process.kill()

    def close(self) -> None:
        """End the processes and forget them."""
        self.kill()
        for process in self._processes:
            process.wait()
            for pipe in (process.stdin, process.stdout):
                with suppress(OSError):  # what was to be sent goes nowhere
                    pipe.close()  # type: ignore[union-attr]


def _tasks(files: Iterable[tuple[str, int]]) -> Iterator[list[str]]:
    task: list[str] = []
    size = 0
    for file, file_size in files:
        task.append(file)
        size += file_size
        if size >= TASK_BYTES:
            yield task
            task, size = [], 0
    if task:
        yield task


def _send(pipe: IO[bytes] | None, value: object) -> None:
    assert pipe is not None
    content = msgspec.msgpack.encode(value)
    pipe.write(len(content).to_bytes(_LENGTH_BYTES) + content)
    pipe.flush()


def _receive(pipe: IO[bytes] | None) -> bytes:
    assert pipe is not None
    head = pipe.read(_LENGTH_BYTES)
    content = pipe.read(int.from_bytes(head))
    if len(head) < _LENGTH_BYTES or len(content) < int.from_bytes(head):
        raise EOFError("the other side has ended")
    return content


def _read(file: str, versioner: Versioner) -> FileContent:
    try:
        data, signature = read_bytes(file)
    except OSError:
        return FileContent(file)  # the watcher looks at it again, and says what is wrong
    return FileContent.of(file, signature, read_manifest(data, file, versioner))


def main() -> None:
    """Read files as they are named on standard input, until it ends."""
    # All that is made here is answered and forgotten, and has no cycles.
    import gc

    gc.disable()
    os.nice(_NICENESS)
    tasks, answers = sys.stdin.buffer, sys.stdout.buffer
    with suppress(EOFError, BrokenPipeError, KeyboardInterrupt):
        settings = msgspec.msgpack.decode(_receive(tasks), type=_Settings)
        versioner = Versioner(settings.cluster, settings.key)
        while True:
            files = msgspec.msgpack.decode(_receive(tasks), type=list[str])
            _send(answers, [_read(file, versioner) for file in files])


if __name__ == "__main__":
    main()
