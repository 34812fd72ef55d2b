"""Coverage-guided fuzzing of the stream parsers with atheris, which is installed by hand: `pip install atheris`.

    python tests/fuzz/fuzz_streams.py proxy_header [libFuzzer options] [more corpus folders]
    python tests/fuzz/fuzz_streams.py client_hello -max_total_time=60

New inputs are kept in the first folder, `corpus/<target>`; `test_stream_fuzz.py` replays all of it.
"""

import sys
from pathlib import Path

import atheris
from stream_targets import CHECKS


def main() -> None:
    """Fuzz the target that the first argument names."""
    check = CHECKS[sys.argv[1]]
    corpus = Path(__file__).parent / "corpus" / sys.argv[1]
    # Not by its import hook, which the gateway's own finder of modules goes before.
    atheris.instrument_all()
    atheris.Setup([sys.argv[0], *sys.argv[2:], str(corpus)], check)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
