"""Tests on the cluster that `KUBECONFIG` names: `make cluster-test`. Ordinary runs leave this folder out."""

import asyncio
import os
from collections.abc import AsyncIterator, Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from cluster.facts import OURS, Facts, find_out, uninstall
from fakes.kubernetes.real import RealCluster

NO_ADDRESS = "this machine has no address but loopback ones, which API servers do not take for endpoints"
_found: list[Facts] = []
"""For the summary."""


@pytest.fixture(scope="session")
def kubeconfig() -> Path:
    if not (named := os.environ.get("KUBECONFIG")):
        pytest.exit("KUBECONFIG is not set: name the file of a cluster to test on, e.g. that of kind or k3s", 2)
    return Path(named)


@pytest.fixture(scope="session")
def facts(kubeconfig: Path) -> Iterator[Facts]:
    """What the cluster has; APISIX' definitions are in it while the tests run, where they can be."""
    found = _beside_the_loop(find_out(kubeconfig))
    _found.append(found)
    yield found
    if found.definitions == OURS:
        _beside_the_loop(uninstall(kubeconfig))


def _beside_the_loop(coroutine: Coroutine[Any, Any, Any]) -> Any:
    """Run a coroutine in a thread: fixtures of the session have no event loop of their own."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, coroutine).result()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def hands(kubeconfig: Path, facts: Facts) -> AsyncIterator[RealCluster]:
    """A namespace of the cluster; what is served there is on this machine."""
    if not facts.address:
        pytest.skip(NO_ADDRESS)
    async with RealCluster(kubeconfig, has_controllers=facts.has_controllers) as cluster:
        yield cluster


@pytest.fixture
async def cluster(kubeconfig: Path, facts: Facts) -> AsyncIterator[RealCluster]:
    """A namespace for one test alone, as it has rights or ends in it."""
    if not facts.address:
        pytest.skip(NO_ADDRESS)
    async with RealCluster(kubeconfig, has_controllers=facts.has_controllers) as found:
        yield found


@pytest.fixture(scope="module")
def definitions(facts: Facts) -> str:
    """Whose definitions of APISIX' kinds there are."""
    if not facts.has_definitions:
        pytest.skip(f"definitions of apisix.apache.org: {facts.definitions}")
    return facts.definitions


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Say what there was, and what was left out for lack of it."""
    for found in _found:
        terminalreporter.section("the cluster")
        for line in found.lines:
            terminalreporter.write_line(line)
    reasons: dict[str, list[str]] = {}
    for report in terminalreporter.stats.get("skipped", ()):
        reasons.setdefault(str(report.longrepr[2]).removeprefix("Skipped: "), []).append(report.nodeid)
    terminalreporter.section("left out")
    for reason, tests in reasons.items():
        terminalreporter.write_line(f"{len(tests)} tests: {reason}")
        for test in sorted({one.partition("[")[0] for one in tests}):
            terminalreporter.write_line(f"    {test}")
    if not reasons:
        terminalreporter.write_line("nothing")
