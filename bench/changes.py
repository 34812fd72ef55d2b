"""Makes changes to manifests on disk, one after the other, and waits until each is served."""

import random
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path

from bench.errors import BenchError
from bench.manifests import endpoint_slice, ingress, replace_file, service, write_class
from bench.probe import Probe

CHANGING = "changing"
CHANGING_HOST = "changing.bench.example"
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


class ChangingSite:
    """A host whose EndpointSlice, in a file of its own, is pointed at one endpoint after the other."""

    def __init__(self, manifests: Path, endpoints: Sequence[int]) -> None:
        self._slice_file = manifests / f"{CHANGING}-slice.yaml"
        self._routes_file = manifests / f"{CHANGING}-routes.yaml"
        self._endpoints = cycle(endpoints)
        self._revision = 0
        self.endpoint = next(self._endpoints)
        write_class(manifests)
        (manifests / f"{CHANGING}-service.yaml").write_text(service(CHANGING))
        replace_file(self._routes_file, ingress(CHANGING, CHANGING_HOST, CHANGING))
        replace_file(self._slice_file, endpoint_slice(CHANGING, self.endpoint))

    def move_endpoint(self) -> None:
        """Point the Service at the next endpoint."""
        self.endpoint = next(self._endpoints)
        replace_file(self._slice_file, endpoint_slice(CHANGING, self.endpoint))

    def change_routes(self) -> None:
        """Give the Ingress another path besides `/`."""
        self._revision += 1
        replace_file(
            self._routes_file, ingress(CHANGING, CHANGING_HOST, CHANGING, paths=("/", f"/release-{self._revision}"))
        )


def make_changes(
    site: ChangingSite, port: int, count: int, pause_s: float, *, also: Callable[[], None] = lambda: None
) -> Iterator[Change]:
    """Move the endpoint `count` times, each time after a pause of `pause_s` to `1.5 * pause_s` at random.

    Args:
        site: what is changed.
        port: of the gateway.
        count: number of changes.
        pause_s: after the change before was served; more than the translator's window for bursts, or changes would
            be measured that wait for it.
        also: done just before each move.

    Raises:
        BenchError: a change is not served within `PATIENCE_S`, or requests fail meanwhile.
    """
    probe = Probe(port, CHANGING_HOST)
    try:
        for _ in range(count):
            time.sleep(pause_s * random.uniform(1.0, 1.5))
            also()
            written = time.monotonic()
            site.move_endpoint()
            served = probe.wait_for(str(site.endpoint), PATIENCE_S)
            yield Change(written, served, str(site.endpoint))
        if probe.failures:
            raise BenchError(f"{probe.failures} requests of the probe failed during the changes")
    finally:
        probe.close()
