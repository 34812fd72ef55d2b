"""The command `headgate` whose gateway says nothing of its traffic: what `bench.summaries` compares the real one with.

Run as a file, with the arguments of `headgate`.
"""

import asyncio
import sys

from headgate.cli.__main__ import main
from headgate.common.stores import TrafficBoard
from headgate.gateway.observability.traffic_summary import TrafficTeller


async def _tell_nothing(teller: TrafficTeller, board: TrafficBoard) -> None:
    await asyncio.Event().wait()


if __name__ == "__main__":
    setattr(TrafficTeller, "run", _tell_nothing)  # noqa: B010 - mypy refuses an assignment to a method
    raise SystemExit(main(sys.argv[1:]))
