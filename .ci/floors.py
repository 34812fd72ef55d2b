"""Compare what tests reach of each core with its floor, lines and branches together; `make coverage` measures it."""

import io
import sys
from typing import NamedTuple

from coverage import Coverage


class Core(NamedTuple):
    """Packages that are measured together."""

    name: str
    packages: tuple[str, ...]
    floor: float
    """Percent; a change that raises what is reached raises this."""


CORES = (
    Core("translator", ("translator",), 98.0),
    Core("table", ("common/table",), 99.0),
    Core("compiled table", ("gateway/table",), 98.0),
    Core("proxy", ("gateway/proxy",), 96.5),
    Core("stores", ("common/stores",), 96.0),
    Core("committing", ("operations/committing", "operations/rollouts"), 98.0),
)


def main() -> int:
    """Print each core with what is reached of it; return 1 if one is below its floor."""
    measured = Coverage()
    measured.load()
    is_low = False
    for core in CORES:
        patterns = [f"*/headgate/{package}/*" for package in core.packages]
        reached = measured.report(include=patterns, file=io.StringIO())
        is_low |= reached < core.floor
        print(f"{core.name}: {reached:.1f} %, floor {core.floor:.1f} %" + (": TOO LOW" if reached < core.floor else ""))
    return 1 if is_low else 0


if __name__ == "__main__":
    sys.exit(main())
