"""Coverage-guided fuzzing of the HTTP/2 edge with atheris, which is installed by hand: `pip install atheris`.

    HEADGATE_ENGINE=pure PYTHONPATH=tests python tests/fuzz/fuzz_http2.py [libFuzzer options] [more corpus folders]

An input is what a client sends behind its preface. New ones are kept in `corpus/http2`, which `test_http2_fuzz.py`
replays.
"""

import sys
from pathlib import Path

import atheris
from http2_targets import check_http2


def main() -> None:
    """Fuzz."""
    corpus = Path(__file__).parent / "corpus" / "http2"
    # Not by its import hook, which the gateway's own finder of modules goes before.
    atheris.instrument_all()
    atheris.Setup([sys.argv[0], *sys.argv[1:], str(corpus)], check_http2)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
