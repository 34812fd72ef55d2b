"""Figures of `bench.instructions` from what callgrind_annotate prints."""

import pytest
from bench.errors import BenchError
from bench.instructions import instructions, read_counts

_LISTED = """\
Ir
--------------------------------------------------------------------------------
3,000 (100.0%)  PROGRAM TOTALS

--------------------------------------------------------------------------------
Ir             file:function
--------------------------------------------------------------------------------
2,000 (66.67%)  ???:llhttp__internal__run [/lib/httptools/parser.so]
  600 (20.00%)  ???:_PyObject_Free [/lib/libpython3.11.so.1.0]
  400 (13.33%)  ???:_PyObject_Malloc [/lib/libpython3.11.so.1.0]
"""


def test_instructions_are_those_of_a_request_by_library_and_by_function() -> None:
    rows = instructions(read_counts(_LISTED), requests=10, top=2).splitlines()
    assert [row.split() for row in rows if row] == [
        ["300", "instructions", "for", "a", "request"],
        ["200", "parser.so"],
        ["100", "libpython3.11.so.1.0"],
        ["200", "llhttp__internal__run", "[parser.so]"],
        ["60", "_PyObject_Free", "[libpython3.11.so.1.0]"],
    ]


def test_listing_without_functions_is_an_error() -> None:
    with pytest.raises(BenchError, match="lists nothing"):
        read_counts("nothing was run")
