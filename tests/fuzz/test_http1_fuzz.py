"""The HTTP/1 edges on all that is in their corpus, and on mutations of it."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fuzz.http1_targets import CHECKS, CUT

FOLDER = Path(__file__).parent / "corpus"
CORPUS = [(name, path) for name in CHECKS for path in sorted((FOLDER / name).iterdir())]
_PIECES = [CUT, b"\r\n", b"\n", b"\r", b" ", b"\t", b":", b"0", b"a", b"\0", b"\r\n\r\n", b"Content-Length: 1\r\n"]
_EDITS = st.lists(st.tuples(st.integers(0, 400), st.integers(0, 3), st.sampled_from(_PIECES)), max_size=4)


@pytest.mark.parametrize(("name", "path"), CORPUS, ids=[f"{name}/{path.name}" for name, path in CORPUS])
def test_input_of_the_corpus(name: str, path: Path) -> None:
    CHECKS[name](path.read_bytes())


@settings(max_examples=300, deadline=None)
@given(st.sampled_from(CORPUS), _EDITS)
def test_edited_inputs(item: tuple[str, Path], edits: list[tuple[int, int, bytes]]) -> None:
    name, path = item
    data = path.read_bytes()
    for place, dropped, piece in edits:
        at = place % (len(data) + 1)
        data = data[:at] + piece + data[at + dropped :]
    CHECKS[name](data)
