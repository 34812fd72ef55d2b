"""Log lines."""

import io
import json
import logging
from collections.abc import Iterator

import pytest

from headgate.common.service.logs import configure_logging
from headgate.common.service.telemetry import span_from


@pytest.fixture(autouse=True)
def _restore_logging() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)


def logged(format: str, message: str, *args: object, level: str = "info", **fields: object) -> str:
    stream = io.StringIO()
    configure_logging("demo", level, format, stream)  # type: ignore[arg-type]
    logging.getLogger("headgate.x").info(message, *args, extra=fields)
    return stream.getvalue()


def test_text_is_time_level_service_message_and_fields() -> None:
    line = logged("text", "applied %d", 3, table="default", reason="it is so", empty="", count=2)
    time, rest = line.split(" ", 1)
    assert time.endswith("Z")
    assert rest == 'INFO    demo applied 3 table=default reason="it is so" empty="" count=2\n'


def test_json_has_the_fields_beside_the_message() -> None:
    entry = json.loads(logged("json", "applied %d", 3, table="default", odd=ValueError("x")))
    assert entry.pop("time").endswith("Z")
    assert entry == {
        "level": "info",
        "service": "demo",
        "logger": "headgate.x",
        "message": "applied 3",
        "table": "default",
        "odd": "x",
    }


def test_json_names_the_trace_that_it_belongs_to() -> None:
    with span_from(f"00-{'a' * 32}-{'b' * 16}-01", "work"):
        assert json.loads(logged("json", "x"))["trace_id"] == "a" * 32


@pytest.mark.parametrize("format", ["text", "json"])
def test_what_a_user_wrote_cannot_forge_a_line(format: str) -> None:
    assert logged(format, "bad %s", "x\n2026-01-01T00:00:00Z INFO demo forged", field="a\nb").count("\n") == 1


def test_a_level_silences_what_is_below() -> None:
    assert logged("text", "quiet", level="warning") == ""


@pytest.mark.parametrize("format", ["text", "json"])
def test_a_traceback_follows(format: str) -> None:
    stream = io.StringIO()
    configure_logging("demo", "info", format, stream)  # type: ignore[arg-type]
    try:
        raise RuntimeError("boom")
    except RuntimeError:
        logging.getLogger("x").exception("failed")
    assert "RuntimeError: boom" in stream.getvalue()


def test_libraries_that_chatter_are_kept_to_warnings() -> None:
    logged("text", "x", level="debug")
    assert not logging.getLogger("nats").isEnabledFor(logging.INFO)
    assert logging.getLogger("headgate.x").isEnabledFor(logging.DEBUG)
