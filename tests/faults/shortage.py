"""Each process gets a tenth of a core and a cluster is large: what was begun comes to its end, `make shortage`.

INGRESSES=10000 (each with a Service and an EndpointSlice) and SHARE=0.1 are the defaults; figures are printed. Not
collected by `pytest` unless it is named; `test_shortage` does the same with a small cluster.
"""

import os
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from fakes.stores.nats import lose_store
from faults.starved import StarvedPlane, starved

BOUND_S = 600.0
INGRESSES, SHARE = int(os.environ.get("INGRESSES") or 10_000), float(os.environ.get("SHARE") or 0.1)
Took = dict[str, float]


async def takeovers(plane: StarvedPlane, share: float) -> Took:
    """A change, then the one that leads is killed, of the watchers and of the translators."""
    async with plane.shortage(share):
        took = {"a change": await plane.until_served(plane.change(), BOUND_S)}
        for work in ("watcher", "translator"):
            await plane.services[await plane.leader(work)].kill()
            took[f"a change after the leading {work} was killed"] = await plane.until_served(plane.change(), BOUND_S)
    return took


async def cold_translators(plane: StarvedPlane, share: float) -> Took:
    """Both translators begin anew; NATS and the watchers have what they had."""
    names = ("translator-0", "translator-1")
    for name in names:
        await plane.services[name].kill()
    await plane.start(*names)
    async with plane.shortage(share):
        return {"a change after cold translators": await plane.until_served(plane.change(), BOUND_S)}


async def lost_nats(plane: StarvedPlane, share: float) -> Took:
    """NATS is killed and comes back without its data."""
    await lose_store(plane.nats)
    async with plane.shortage(share):
        return {"a change after NATS lost everything": await plane.until_served(plane.change(), BOUND_S)}


Scenario = Callable[[StarvedPlane, float], Awaitable[Took]]


async def run(folder: Path, scenario: Scenario, count: int, share: float) -> None:
    """Serve a cluster, then run a scenario; say how long each step took."""
    async with starved(folder, count) as plane:
        await plane.start()
        await plane.until_served(plane.change(), BOUND_S)
        for what, took_s in (await scenario(plane, share)).items():
            print(f"{count} Ingresses, {share:.0%} of a core each: {what} was served after {took_s:.1f} s", flush=True)


@pytest.mark.timeout(0)
@pytest.mark.parametrize("scenario", [takeovers, cold_translators, lost_nats])
async def test_a_shortage_of_cpu_ends_in_progress(scenario: Scenario, tmp_path: Path) -> None:
    await run(tmp_path, scenario, INGRESSES, SHARE)
