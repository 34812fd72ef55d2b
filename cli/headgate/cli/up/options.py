"""What `headgate up` was asked to do."""

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from headgate.cli.terminal.errors import UsageMistake
from headgate.cli.up.route_flags import RouteFlag
from headgate.common.stores.redis.target import parse_redis_url
from headgate.common.stores.settings import ON_NATS

AccessLog = Literal["combined", "json", "off"]
LogLevel = Literal["debug", "info", "warning", "error"]

_SERVICES = ("nats", "watcher", "translator", "gateway", "console", "headgate")
_NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")


@dataclass(frozen=True)
class DemoBackend:
    """A demo backend to start."""

    name: str
    port: int


@dataclass(frozen=True)
class UpOptions:
    """The flags of `headgate up`, checked."""

    manifests: tuple[Path, ...] = ()
    """Folders and files."""
    routes: tuple[RouteFlag, ...] = ()
    kubeconfig: Path | None = None
    context: str = ""
    cluster: str = "local"
    http_port: int = 8080
    https_port: int = 8443
    admin_port: int = 9080
    console_port: int = 9090
    """0: no console."""
    data_dir: Path = Path(".headgate")
    workers: int = 1
    nats_url: str = ""
    """Empty: start a NATS server in the data directory."""
    store: str = ""
    """Where tables are; empty: what the services' own settings say."""
    access_log: AccessLog = "combined"
    log_level: LogLevel = "info"
    environment: frozenset[str] = frozenset()
    """Names of the `HEADGATE_*` variables that are set; services read them."""
    demo_backends: tuple[DemoBackend, ...] = ()

    @property
    def is_local(self) -> bool:
        """Whether files and flags of this machine say what is served, and not a cluster."""
        return bool(self.manifests or self.routes)

    def check(self) -> None:
        """Find mistakes that one flag alone does not show.

        Raises:
            UsageMistake: says which flags, and what would be right.
        """
        if not self.is_local and self.kubeconfig is None:
            raise UsageMistake(
                "nothing to serve: give --route HOST=ADDRESS:PORT, --manifests DIR (such as examples/quickstart) or "
                "--kubeconfig FILE"
            )
        if self.is_local and self.kubeconfig is not None:
            flag = "--manifests" if self.manifests else "--route"
            raise UsageMistake(f"{flag} and --kubeconfig exclude each other: one `up` serves one source")
        if self.context and self.kubeconfig is None:
            raise UsageMistake("--context chooses a context of a kubeconfig: give --kubeconfig FILE too")
        if not _NAME.fullmatch(self.cluster):
            raise UsageMistake(
                f"--cluster {self.cluster!r} is not a name: lower case letters, digits and '-', at most 63"
            )
        self._check_files()
        self._check_ports()
        self._check_store()

    def _check_files(self) -> None:
        for path in self.manifests:
            if not path.exists():
                raise UsageMistake(f"--manifests {path}: no such file or folder")
            if not os.access(path, os.R_OK):
                raise UsageMistake(f"--manifests {path}: not readable")
        if self.kubeconfig is not None:
            self._check_kubeconfig(self.kubeconfig)

    def _check_kubeconfig(self, path: Path) -> None:
        if not path.is_file():
            raise UsageMistake(f"--kubeconfig {path}: {'not a file' if path.exists() else 'no such file'}")
        from headgate.watcher.api.kubeconfig import check_kubeconfig
        from headgate.watcher.errors import ClusterConfigError

        try:
            check_kubeconfig(path, self.context)
        except ClusterConfigError as error:
            raise UsageMistake(str(error)) from error

    def _check_ports(self) -> None:
        taken: dict[int, str] = {}
        for flag, port in self.ports():
            if port in taken:
                raise UsageMistake(f"{taken[port]} and {flag} both say {port}: choose different ports")
            taken[port] = flag
        names = [backend.name for backend in self.demo_backends]
        for name in names:
            if name in _SERVICES:
                raise UsageMistake(f"--demo-backend: {name!r} is the name of a service; choose another")
        if len(set(names)) != len(names):
            raise UsageMistake(f"--demo-backend: the names must differ, these do not: {', '.join(names)}")

    def _check_store(self) -> None:
        if self.store in ("", ON_NATS):
            return
        try:
            parse_redis_url(self.store)
        except ValueError as error:
            raise UsageMistake(f"--store: {error}, or {ON_NATS}") from error

    def ports(self) -> list[tuple[str, int]]:
        """Every port that will be listened on, with the flag that chose it."""
        demo = [(f"--demo-backend {backend.name}", backend.port) for backend in self.demo_backends]
        services = [
            ("--http-port", self.http_port),
            ("--https-port", self.https_port),
            ("--admin-port", self.admin_port),
            *([("--console-port", self.console_port)] if self.console_port else []),
        ]
        return services + demo


def parse_demo_backend(text: str) -> DemoBackend:
    """Read `NAME=PORT`.

    Raises:
        UsageMistake: it is not of this form.
    """
    name, _, port = text.partition("=")
    if not _NAME.fullmatch(name) or not port.isascii() or not port.isdigit() or not 0 < int(port) < 65536:
        raise UsageMistake(f"--demo-backend {text!r}: expected NAME=PORT, such as red=9101")
    return DemoBackend(name, int(port))
