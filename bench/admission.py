"""How long the webhook takes to answer: `python -m bench.admission --ingresses 10000 --requests 2000`.

`headgate up` serves so many Ingresses, each with a Service and an EndpointSlice. The watcher's webhook runs
in a process of its own beside it. One client asks as an API server does, over one TLS connection, one
review after the other: new objects without fault, ones whose path another object has, ones with a fault, and updates.
First while nothing else happens, then from several connections at once, then while objects change.
"""

import argparse
import asyncio
import contextlib
import itertools
import json
import ssl
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import aiohttp
import yaml
from aiohttp import ClientSession

from bench.errors import BenchError
from bench.recording.churner import Churned, Churner
from bench.reporting.figures import Distribution
from bench.reporting.machine import describe_machine, load_average
from bench.reporting.tables import table
from bench.servers.origin import start_origin
from bench.setup.manifests import ingress, site_host, site_name, write_class, write_sites
from bench.setup.measuring import measure_alone
from bench.setup.processes import Process, cpu_seconds, free_ports
from bench.setup.stack import Stack
from bench.setup.tools import IMPORTABLE
from headgate.gateway.tls.loading import self_signed

KINDS = ("new", "new, path taken", "new, with a fault", "update", "update, with a fault")
PORTS = 8
RATE = 100
"""Changes a second."""
AT_ONCE = 16
WARM_UP = 100
REST_S, REST_SHARE = 2.0, 0.05
BOUND_S = 120.0
DOCUMENTS_PER_FILE = 100
CREATED = {"creationTimestamp": "2026-01-01T00:00:00Z"}
Review = tuple[str, dict[str, Any]]


def reviews(sites: int) -> Iterator[Review]:
    """Yield reviews of each kind in turn, for ever, each about another site."""
    for number in itertools.count():
        kind, index = KINDS[number % len(KINDS)], number * 7919 % sites
        name, host = site_name(index), site_host(index)
        before = _object(name, host) if kind.startswith("update") else None
        if before is None:
            name, host = f"{name}-new", host if "taken" in kind else f"new-{host}"
        after = _object(name, "Wrong_Host" if "fault" in kind else host)
        if before is not None:
            after["metadata"]["annotations"] = {"headgate.dev/retries": "2"}
        yield kind, _review(after, before)


def _object(name: str, host: str) -> dict[str, Any]:
    made: dict[str, Any] = yaml.load(ingress(name, host, site_name(0)), yaml.CSafeLoader)
    made["metadata"] |= CREATED
    return made


def _review(after: dict[str, Any], before: dict[str, Any] | None) -> dict[str, Any]:
    request = {
        "uid": "0df28fbd-5f5f-11e8-bc74-36e6bb280816",
        "resource": {"group": "networking.k8s.io", "version": "v1", "resource": "ingresses"},
        "namespace": after["metadata"]["namespace"],
        "name": after["metadata"]["name"],
        "operation": "UPDATE" if before else "CREATE",
        "object": after,
        "oldObject": before,
    }
    return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}


class Webhook:
    """The webhook for the cluster of a stack."""

    def __init__(self, stack: Stack, folder: Path) -> None:
        chain, key = make_certificate(folder)
        self._port = free_ports(1)[0]
        flags = [f"--nats-url={stack.nats_url}", f"--admission-port={self._port}", "--admission-host=127.0.0.1"]
        flags += [f"--admission-certificate-file={chain}", f"--admission-key-file={key}"]
        self.process = Process(
            "webhook", [sys.executable, "-m", "bench.servers.webhook", *flags], folder, env=IMPORTABLE
        )
        self._context = ssl.create_default_context(cafile=str(chain))

    async def ask(self, session: ClientSession, review: dict[str, Any]) -> tuple[float, Any]:
        """Return the milliseconds that an answer took, and the answer."""
        body = json.dumps(review).encode()
        started = time.perf_counter()
        url = f"https://localhost:{self._port}/validate?timeout=10s"
        async with session.post(url, data=body, ssl=self._context) as answer:
            content = await answer.read()
        took_ms = (time.perf_counter() - started) * 1e3
        if answer.status != 200:
            raise BenchError(f"the webhook answers {answer.status}: {content[:200]!r}")
        return took_ms, json.loads(content)["response"]

    async def wait(self, sites: int) -> None:
        """Wait until objects are judged."""
        end, known = time.monotonic() + BOUND_S, False
        _, wrong = next(each for each in reviews(sites) if "fault" in each[0])
        async with ClientSession() as session:
            while not known:
                self.process.ensure_running()
                if time.monotonic() > end:
                    raise BenchError("nothing is judged")
                with contextlib.suppress(aiohttp.ClientConnectionError):  # it is still starting
                    known = not (await self.ask(session, wrong))[1]["allowed"]
                await asyncio.sleep(0.1)


def make_certificate(folder: Path) -> tuple[Path, Path]:
    """Make a certificate for localhost."""
    chain, key = folder / "webhook.crt", folder / "webhook.key"
    for path, content in zip((chain, key), self_signed("localhost"), strict=True):
        path.write_bytes(content)
    return chain, key


async def measure(webhook: Webhook, sites: int, requests: int, connections: int) -> dict[str, list[float]]:
    """Ask, and return the milliseconds by kind of review; what is answered wrongly is an error."""
    took: dict[str, list[float]] = {kind: [] for kind in KINDS}
    todo = itertools.islice(reviews(sites), requests)

    async def client() -> None:
        async with ClientSession() as session:
            for kind, review in todo:
                took_ms, response = await webhook.ask(session, review)
                is_expected = response["allowed"] == (kind in ("new", "update"))
                if not is_expected or "not checked" in str(response):
                    raise BenchError(f"{kind}: {response}")
                took[kind].append(took_ms)

    await asyncio.gather(*(client() for _ in range(connections)))
    return took


def wait_for_rest(pids: list[int]) -> None:
    """Wait until processes have nothing to do: at the start the status of every object is written.

    Raises:
        BenchError: they go on and on.
    """
    end = time.monotonic() + BOUND_S
    while time.monotonic() < end:
        before = cpu_seconds(pids)
        time.sleep(REST_S)
        if cpu_seconds(pids) - before < REST_SHARE * REST_S:
            return
    raise BenchError("the translator does not come to rest")


def _rows(phase: str, took: dict[str, list[float]]) -> Iterator[list[str]]:
    everything = [each for several in took.values() for each in several]
    for kind, samples in {"all": everything, **took}.items():
        found = Distribution.of(samples)
        figures = (found.p50, found.p99, found.max)
        yield [f"{phase}: {kind}", str(found.count), *(f"{figure:.1f}" for figure in figures)]


def _run(sites: int, requests: int, folder: Path) -> list[list[str]]:
    manifests, ports = folder / "manifests", tuple(free_ports(PORTS))
    write_sites(manifests, sites, ports, DOCUMENTS_PER_FILE)
    write_class(manifests)
    rows: list[list[str]] = []
    with start_origin(folder / "origin", [], named_ports=ports, named_host="*"), Stack(manifests, folder) as stack:
        last = sites - 1
        stack.wait_until_serving(site_host(last), str(ports[last % PORTS]), BOUND_S)
        webhook = Webhook(stack, folder)

        def run(phase: str, connections: int) -> None:
            rows.extend(_rows(phase, asyncio.run(measure(webhook, sites, requests, connections))))

        try:
            asyncio.run(webhook.wait(sites))
            wait_for_rest([stack.pids["translator"]])
            asyncio.run(measure(webhook, sites, WARM_UP, 1))
            _phases(run, lambda: Churner(folder, stack.nats_url, RATE, Churned(sites, 1, ports)))
        finally:
            webhook.process.stop()
    return rows


def _phases(run: Callable[[str, int], None], churner: Callable[[], Churner]) -> None:
    run("quiet", 1)
    run(f"{AT_ONCE} at once", AT_ONCE)
    with churner():
        run(f"{RATE} changes/s", 1)


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--ingresses", type=int, default=10_000)
    parser.add_argument("--requests", type=int, default=2000, help="in each phase")
    given = parser.parse_args()
    rows = measure_alone(lambda folder: _run(given.ingresses, given.requests, folder))
    print(f"{given.ingresses} Ingresses; {describe_machine()}, load {load_average():.1f}\n")
    print(table(["milliseconds", "answers", "p50", "p99", "max"], rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())
