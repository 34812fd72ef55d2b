"""Which processes `up` runs, and with which flags: a pure function of what was asked."""

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from headgate.cli.up.options import DemoBackend, UpOptions
from headgate.cli.up.ports import AdminPort
from headgate.cli.up.process import ProcessSpec
from headgate.cli.up.route_flags import ROUTES_FILE
from headgate.common.sealing import PUBLIC_KEY_FILE

DRAIN_S = 10.0
"""Seconds that requests in flight get when `up` ends: someone waits at the terminal."""
FINISH_S = 3.0
"""Seconds that the other services get; each has little to finish."""
ALONE = "--no-leader-election"
"""One of each service runs: a restarted one must not wait for its own lease."""
LOOPBACK = "127.0.0.0/8,::1/128"
"""Where the backends of manifests are, as the author of these runs everything else here, too."""
KILL_AFTER_S = 3.0
"""Seconds that a service may overstay."""


@dataclass(frozen=True)
class UpPlan:
    """What to start, and in which order to end it."""

    broker: ProcessSpec | None
    """The NATS server, unless an existing one is used."""
    watcher: ProcessSpec
    translator: ProcessSpec
    gateway: ProcessSpec
    demo_backends: tuple[ProcessSpec, ...]
    console: ProcessSpec | None = None
    admin_ports: Mapping[str, AdminPort] = field(default_factory=dict)
    """By service; the gateway's is the user's to choose."""

    @property
    def services(self) -> tuple[ProcessSpec, ...]:
        """What is started once the broker answers, in this order."""
        return (*self.demo_backends, self.watcher, self.translator, self.gateway, *self._console)

    @property
    def names(self) -> list[str]:
        """Names of all processes, in the order of starting."""
        return [spec.name for spec in (*self._broker, *self.services)]

    @property
    def stop_groups(self) -> list[list[ProcessSpec]]:
        """The order of ending: traffic first, then what feeds it, then what it all stands on."""
        return [[self.gateway], [self.watcher, self.translator, *self._console, *self.demo_backends], self._broker]

    @property
    def _console(self) -> list[ProcessSpec]:
        return [self.console] if self.console else []

    @property
    def _broker(self) -> list[ProcessSpec]:
        return [self.broker] if self.broker else []


def make_plan(options: UpOptions, nats_url: str, broker: ProcessSpec | None) -> UpPlan:
    """Decide what runs.

    Args:
        options: what was asked for.
        nats_url: of the server that all services use.
        broker: the embedded server, if there is one.
    """
    admin_ports = {"watcher": AdminPort(), "translator": AdminPort()}
    watcher = _service("watcher", options, nats_url, FINISH_S, [*_watcher_flags(options), ALONE])
    translator = _service("translator", options, nats_url, FINISH_S, [*_store_flags(options), ALONE])
    return UpPlan(
        broker=broker,
        watcher=replace(watcher, prepare=admin_ports["watcher"].choose),
        translator=replace(translator, prepare=admin_ports["translator"].choose),
        gateway=_service("gateway", options, nats_url, DRAIN_S, _gateway_flags(options)),
        demo_backends=tuple(map(_demo_backend, options.demo_backends)),
        console=_service("console", options, nats_url, FINISH_S, _console_flags(options))
        if options.console_port
        else None,
        admin_ports=admin_ports,
    )


def _demo_backend(backend: DemoBackend) -> ProcessSpec:
    flags = ("demo-backend", f"--name={backend.name}", f"--port={backend.port}")
    return ProcessSpec(backend.name, _headgate("cli", *flags))


def _service(name: str, options: UpOptions, nats_url: str, grace_s: float, flags: list[str]) -> ProcessSpec:
    shared = [f"--nats-url={nats_url}", f"--data-dir={options.data_dir}", f"--log-level={options.log_level}"]
    command = _headgate(name, *shared, f"--grace-s={grace_s:g}", *flags)
    return ProcessSpec(name, command, stop_within_s=grace_s + KILL_AFTER_S)


def _headgate(package: str, *flags: str) -> tuple[str, ...]:
    # -P: a file named like a module in the user's folder must not be imported in its place.
    return (sys.executable, "-P", "-m", f"headgate.{package}", *flags)


def _watcher_flags(options: UpOptions) -> list[str]:
    flags = [f"--cluster={options.cluster}", f"--sealing-public-keys={options.data_dir / PUBLIC_KEY_FILE}"]
    flags += [f"--manifests={path}" for path in options.manifests]
    flags += [f"--manifests={options.data_dir / ROUTES_FILE}"] if options.routes else []
    if options.kubeconfig:
        flags += [f"--kubeconfig={options.kubeconfig}"]
        flags += [f"--context={options.context}"] if options.context else []
    return flags


def _store_flags(options: UpOptions) -> list[str]:
    return [f"--store={options.store}"] if options.store else []


def _gateway_flags(options: UpOptions) -> list[str]:
    return [
        *_store_flags(options),
        f"--http-port={options.http_port}",
        f"--https-port={options.https_port}",
        f"--admin-port={options.admin_port}",
        f"--workers={options.workers}",
        f"--access-log={options.access_log}",
        *(_development_flags(options) if options.is_local else []),
    ]


def _console_flags(options: UpOptions) -> list[str]:
    return [
        *_store_flags(options),
        f"--console-port={options.console_port}",
        f"--gateway-url=http://127.0.0.1:{options.admin_port}",
    ]


def _development_flags(options: UpOptions) -> list[str]:
    """Return what suits manifests on one's own machine, unless the environment says otherwise."""
    flags = {"HEADGATE_ALLOWED_DESTINATIONS": f"--allowed-destinations={LOOPBACK}"}
    flags["HEADGATE_DETAILED_ERRORS"] = "--detailed-errors"
    return [flag for name, flag in flags.items() if name not in options.environment]
