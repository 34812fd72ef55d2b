"""Makes changes to manifests on disk, one after the other, and waits until each is served."""

import random
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path
from typing import Protocol

from bench.clients.probe import Probe
from bench.errors import BenchError
from bench.setup.manifests import INGRESS, SEPARATOR, Dialect, endpoint_slice, replace_file, service, write_class
from bench.setup.workload import DOMAIN

CHANGING = "changing"
CROWDED = "crowded"
PATIENCE_S = 30.0


@dataclass(frozen=True, slots=True)
class Change:
    """One change that was served."""

    written: float
    """Monotonic seconds at which the file was put in place."""
    served: float
    """Monotonic seconds at which the first request of the new endpoint was answered."""
    endpoint: str
    """Body of that answer: the new endpoint's port."""

    @property
    def took_ms(self) -> float:
        """From the file to the answer."""
        return (self.served - self.written) * 1e3


class Changing(Protocol):
    """A host that is changed again and again."""

    host: str

    @property
    def answer(self) -> str:
        """Body of the answers once everything written is served."""


class ChangingSite:
    """A host whose EndpointSlice is pointed at one endpoint after the other, or whose route at one of two Services.

    The slice has a file of its own, or shares it with `neighbours`, other documents that stay as they are.
    """

    def __init__(
        self,
        manifests: Path,
        endpoints: Sequence[int],
        *,
        name: str = CHANGING,
        neighbours: Sequence[str] = (),
        dialect: Dialect = INGRESS,
    ) -> None:
        self.name = name
        self.host = f"{name}.{DOMAIN}"
        self._manifests = manifests
        self._neighbours = neighbours
        self._dialect = dialect
        *moving, self._twin_endpoint = endpoints
        self._endpoints = cycle(moving)
        self._is_at_twin = False
        twin = f"{name}-twin"
        write_class(manifests)
        services = (service(name), service(twin), endpoint_slice(twin, self._twin_endpoint))
        (manifests / f"{name}-services.yaml").write_text(SEPARATOR.join(services))
        self._write_route()
        self.move_endpoint()

    @property
    def answer(self) -> str:
        """Body of the answers once everything written is served: the port of the endpoint."""
        return str(self._twin_endpoint if self._is_at_twin else self._endpoint)

    def move_endpoint(self) -> None:
        """Point the Service at the next endpoint."""
        self._endpoint = next(self._endpoints)
        documents = (*self._neighbours, endpoint_slice(self.name, self._endpoint))
        replace_file(self._manifests / f"{self.name}-slice.yaml", SEPARATOR.join(documents))

    def flip_route(self) -> None:
        """Point the route at the other Service."""
        self._is_at_twin = not self._is_at_twin
        self._write_route()

    def _write_route(self) -> None:
        backend = f"{self.name}-twin" if self._is_at_twin else self.name
        route = self._dialect.write(0, self.name, self.host, backend)
        replace_file(self._manifests / f"{self.name}-route.yaml", route)


def make_changes(site: Changing, port: int, count: int, pause_s: float, change: Callable[[], None]) -> Iterator[Change]:
    """Make a change `count` times, each time after a pause of `pause_s` to `1.5 * pause_s` at random.

    Args:
        site: what is changed.
        port: of the gateway.
        count: number of changes.
        pause_s: after the change before was served; more than the translator's window for bursts, or changes would
            be measured that wait for it.
        change: one of the site's methods.

    Raises:
        BenchError: a change is not served within `PATIENCE_S`, or requests fail meanwhile.
    """
    probe = Probe(port, site.host)
    try:
        for _ in range(count):
            time.sleep(pause_s * random.uniform(1.0, 1.5))
            written = time.monotonic()
            change()
            served = probe.wait_for(site.answer, PATIENCE_S)
            yield Change(written, served, site.answer)
        if probe.failures:
            raise BenchError(f"{probe.failures} requests of the probe failed during the changes")
    finally:
        probe.close()
