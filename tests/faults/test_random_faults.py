"""A random schedule of faults over the real processes, with traffic and changes all the time, and a model that judges.

No request fails because of the control plane; versions of gateways and generations in answers never go back; every
table is the translation of one state of the log; ten seconds after the last fault both gateways serve what the API
servers want.

    FAULT_SEED=17 pytest tests/faults/test_random_faults.py -k redis            # another short schedule
    FAULT_SCHEDULE=lines.txt pytest tests/faults/test_random_faults.py -k redis # one that was printed
    make soak MINUTES=20 SEED=17                                                # a long one
"""

import os
from pathlib import Path

import pytest

from faults.campaign import campaign, tell
from faults.deployment import SHAPES
from faults.schedule import Schedule, read

SEED, SCHEDULE = "FAULT_SEED", "FAULT_SCHEDULE"
SEEDS = {"single": 3, "cluster": 4, "redis": 4}
LENGTH_S, COUNT = 6.0, 5
"""How long things break, and how many."""
MUST = {"single": "restore", "cluster": "nats-server", "redis": "redis-server"}
"""What is drawn first, so that a store is always in it."""


@pytest.mark.parametrize("shape", SHAPES)
async def test_a_short_random_schedule_of_faults_harms_nobody(shape: str, tmp_path: Path) -> None:
    seed = int(os.environ.get(SEED) or SEEDS[shape])
    async with campaign(tmp_path, shape, seed) as run:
        schedule = _printed() or run.draw(LENGTH_S, COUNT, MUST[shape])
        await run.round(schedule)
        assert run.observed.wrong == [], tell(run, schedule, shape, seed)
        assert run.observed.tables_checked
        assert min(run.observed.answers.values()) > 50


def _printed() -> Schedule:
    """The schedule that is asked for as it was printed; empty for none."""
    path = os.environ.get(SCHEDULE)
    return read(Path(path).read_text()) if path else ()
