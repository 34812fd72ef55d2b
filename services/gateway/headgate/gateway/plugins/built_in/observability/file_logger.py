"""`file-logger`: a line of JSON for each request, in a file.

Lines are written several times a second, off the way of requests, and the file is opened again each time, so that it
may be rotated. Routes are written by many people, so files are only written below the folder that the gateway's setting
`plugin_log_dir` names; without it only `/dev/stdout` and `/dev/stderr`. What may not be written is said once in the
gateway's log, and the route is served.
"""

import asyncio
import os
from collections.abc import Sequence
from pathlib import Path

from headgate.common.plugins.observability.loggers import FileLoggerConfig
from headgate.gateway.plugins.built_in.observability.batches import Batches, BatchLimits, Send
from headgate.gateway.plugins.built_in.observability.log_entries import LoggerPlugin
from headgate.gateway.plugins.interface import PluginServices, Request
from headgate.gateway.plugins.kit.conditions import compile_expressions
from headgate.gateway.plugins.kit.folders import file_below
from headgate.gateway.plugins.kit.memory import allocate

_STREAMS = {"/dev/stdout": 1, "/dev/stderr": 2}
_LIMITS = BatchLimits(size=1000, idle_s=0.25, age_s=0.25)


class FileLogger(LoggerPlugin[FileLoggerConfig]):
    """Writes lines."""

    name = "file-logger"
    order = 399
    Config = FileLoggerConfig

    def __init__(self, config: FileLoggerConfig, services: PluginServices) -> None:
        super().__init__(config, services)
        self._takes = compile_expressions(config.match)
        self._batches: Batches | None = None
        try:
            target = log_file(config.path, services.log_dir)
        except ValueError as error:
            services.logger.warning("file-logger of %s writes nothing: %s", services.scope, error)
            return
        state_key = (self.name, str(target))
        self._batches = services.shared.get(
            state_key,
            lambda: Batches(_appending(target), _LIMITS, str(target), services.logger, allocate(services, self.name)),
        )
        services.close_later(self._batches)

    def write(self, entry: bytes, request: Request) -> None:
        """Write an entry."""
        if self._batches is not None and (self._takes is None or self._takes(request, None)):
            self._batches.add(entry)


def log_file(path: str, folder: Path | None) -> Path | int:
    """Return the file, or the number of a stream. Raises ValueError if it may not be written."""
    if path in _STREAMS:
        return _STREAMS[path]
    if folder is None:
        raise ValueError(f"{path} is a file, and the setting plugin_log_dir names no folder for such")
    return file_below(folder, path, "plugin_log_dir")


def _appending(target: Path | int) -> Send:
    async def send(entries: Sequence[bytes]) -> None:
        await asyncio.to_thread(_append, target, b"".join(entry + b"\n" for entry in entries))

    return send


def _append(target: Path | int, lines: bytes) -> None:
    if isinstance(target, int):
        _write(target, lines)
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o640)
    try:
        _write(descriptor, lines)
    finally:
        os.close(descriptor)


def _write(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        written = os.write(descriptor, view)
        view = view[written:]
