"""Random schedules of faults for as long as one likes, one round after the other: `make soak MINUTES=20 SEED=17`.

Each round ends when everything has converged and nothing was wrong; see `test_random_faults`. The n-th schedule comes
from the seed alone. Not collected by `pytest` unless it is named.
"""

import os
import random
import time
from pathlib import Path

import pytest

from faults.campaign import campaign, tell
from faults.deployment import SHAPES

LENGTH_S, COUNT = 20.0, 12
"""How long things break in a round, and how many."""


@pytest.mark.timeout(0)
@pytest.mark.parametrize("shape", SHAPES)
async def test_random_schedules_of_faults_harm_nobody(shape: str, tmp_path: Path) -> None:
    seed = int(os.environ.get("FAULT_SEED") or random.randrange(1_000_000))
    end = time.monotonic() + 60 * float(os.environ["FAULT_MINUTES"]) / len(SHAPES)
    async with campaign(tmp_path, shape, seed) as run:
        while time.monotonic() < end:
            schedule = run.draw(LENGTH_S, COUNT)
            await run.round(schedule)
            print(f"{shape}, seed {seed}: round {len(run.took_s)} had converged after {run.took_s[-1]} s", flush=True)
            assert run.observed.wrong == [], tell(run, schedule, shape, seed)
