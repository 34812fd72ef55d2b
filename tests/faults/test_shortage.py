"""A tenth of a core for each process, with a small cluster; `make shortage` does it with a large one."""

from pathlib import Path

import pytest

from faults.shortage import run, takeovers


@pytest.mark.slow
async def test_takeovers_with_a_tenth_of_a_core_end_in_progress(tmp_path: Path) -> None:
    await run(tmp_path, takeovers, 50, 0.1)
