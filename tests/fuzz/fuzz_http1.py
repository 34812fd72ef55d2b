"""Coverage-guided fuzzing of the HTTP/1 edges with atheris, which is installed by hand: `pip install atheris`.

    HEADGATE_ENGINE=pure python tests/fuzz/fuzz_http1.py http1_client [libFuzzer options] [more corpus folders]
    HEADGATE_ENGINE=pure python tests/fuzz/fuzz_http1.py http1_upstream -max_total_time=60

New inputs are kept in the first folder, `corpus/<target>`; `test_http1_fuzz.py` replays all of it. Coverage is
only seen in plain Python.
"""

import sys
from collections.abc import Mapping
from pathlib import Path
from types import FunctionType
from typing import Any

import atheris

FOLDER = Path(__file__).parent


def _instrument(names: Mapping[str, Any]) -> None:
    for value in list(names.values()):
        if isinstance(value, FunctionType):
            atheris.instrument_func(value)
        elif isinstance(value, type) and value.__module__.startswith("headgate.gateway.proxy"):
            _instrument(vars(value))


def main() -> None:
    """Fuzz the target that the first argument names."""
    sys.path.insert(0, str(FOLDER.parent))
    from fuzz.http1_targets import CHECKS

    check = CHECKS[sys.argv[1]]
    # Not by its import hook, which the gateway's own finder of modules goes before; all there is would take minutes.
    for name, module in list(sys.modules.items()):
        if name.startswith("headgate.gateway.proxy"):
            _instrument(vars(module))
    dictionary = f"-dict={FOLDER / 'http1.dict'}"
    atheris.Setup([sys.argv[0], dictionary, *sys.argv[2:], str(FOLDER / "corpus" / sys.argv[1])], check)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
