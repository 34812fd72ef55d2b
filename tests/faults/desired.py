"""What people ask of the API servers while everything else breaks.

Every cluster has hosts that always exist and change all the time: a header of their answers counts the generations of
their Ingress, and their only endpoint moves from backend to backend. Other hosts come and go, with all their objects.
"""

import json
import random
from collections.abc import Sequence

from fakes.kubernetes.api import FakeKubernetes
from fakes.peers.echo import EchoServer
from fakes.translator.deltas import applied, endpoint_slice, ingress, service
from headgate.common.deltas import Delta
from headgate.common.resources import ENDPOINT_SLICE, INGRESS, SERVICE, JsonObject
from headgate.watcher.objects.preparing import strip

STEADY, PASSING = 3, 4
"""Hosts of each cluster."""
GENERATION = "x-generation"
READ_KINDS = (INGRESS, SERVICE, ENDPOINT_SLICE)


class Desired:
    """The objects of one cluster, as its API server has them."""

    def __init__(self, cluster: str, api: FakeKubernetes, backends: Sequence[EchoServer]) -> None:
        self.cluster = cluster
        self.api = api
        self._backends = backends
        self.generations = {f"steady{number}.{cluster}.example": 0 for number in range(STEADY)}
        """Of the hosts that always exist: how often their Ingress was written."""
        self._passing: set[str] = set()

    def begin(self) -> None:
        """Make what always exists."""
        for host in self.generations:
            self._write(service(_name(host)))
            self._move(host, self._backends[0])
            self._bump(host)

    def change(self, rng: random.Random) -> None:
        """Change one thing."""
        host = rng.choice(sorted(self.generations))
        match rng.randrange(4):
            case 0:
                self._bump(host)
            case 1 | 2:
                self._move(host, rng.choice(self._backends))
            case _:
                self._come_or_go(f"passing{rng.randrange(PASSING)}.{self.cluster}.example", rng)

    def bump_all(self) -> None:
        """Change every host that always exists."""
        for host in self.generations:
            self._bump(host)

    def deltas(self) -> list[Delta]:
        """Everything that the API server has, as a watcher would say it."""
        return [
            applied(strip(kind, found), self.cluster) for kind in READ_KINDS for found in self.api.all(kind.resource)
        ]

    def _bump(self, host: str) -> None:
        self.generations[host] += 1
        self._write(_routed(host, self.generations[host]))

    def _move(self, host: str, to: EchoServer) -> None:
        self._write(endpoint_slice(_name(host), "127.0.0.1", port=to.port))

    def _come_or_go(self, host: str, rng: random.Random) -> None:
        name = _name(host)
        if host in self._passing:
            self._passing.remove(host)
            for resource, each in (("ingresses", name), ("services", name), ("endpointslices", f"{name}-1")):
                self.api.delete(resource, each)
        else:
            self._passing.add(host)
            self._write(service(name))
            self._move(host, rng.choice(self._backends))
            self._write(_routed(host, 1))

    def _write(self, manifest: JsonObject) -> None:
        manifest["metadata"].pop("uid", None)
        self.api.apply(manifest)


def _name(host: str) -> str:
    return host.partition(".")[0]


def _routed(host: str, generation: int) -> JsonObject:
    plugins = [{"name": "response-rewrite", "config": {"headers": {"set": {GENERATION: str(generation)}}}}]
    made: JsonObject = ingress(
        _name(host),
        host=host,
        service=_name(host),
        class_name="headgate",
        annotations={"headgate.dev/plugins": json.dumps(plugins)},
    )
    return made
