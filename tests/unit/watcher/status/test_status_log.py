"""What is wrong with objects from manifests goes to the log."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime

import pytest

from fakes.waiting import until
from headgate.common.problems import Problem, Severity
from headgate.common.resources import ObjectRef
from headgate.common.service.tasks import cancel
from headgate.common.status import StatusUpdate
from headgate.common.stores.memory.boards import MemoryStatusBoard
from headgate.watcher.status.log import StatusLog

REF = ObjectRef("a", "networking.k8s.io", "ingresses", "default", "web")
BAD = Problem(reason="ServiceNotFound", field="spec.rules[0]", message="there is no Service x")
ODD = Problem(severity=Severity.WARNING, reason="Odd", message="odd")


def update(*problems: Problem, ref: ObjectRef = REF) -> StatusUpdate:
    return StatusUpdate(
        ref=ref,
        api_version="networking.k8s.io/v1",
        kind="Ingress",
        uid="u",
        is_accepted=True,
        problems=problems,
        at=datetime.now(UTC),
    )


def locate(ref: ObjectRef) -> str:
    return "web.yaml:3" if ref.name == "web" else ""


@asynccontextmanager
async def logging_statuses(board: MemoryStatusBoard) -> AsyncIterator[StatusLog]:
    one = StatusLog(board, "a", locate)
    task = asyncio.create_task(one.run())
    try:
        yield one
    finally:
        await cancel(task)


async def test_problems_are_one_line_with_file_and_object(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    board = MemoryStatusBoard()
    async with logging_statuses(board) as one:
        await board.post(update(BAD, ODD))
        await until(lambda: bool(caplog.records))
        (record,) = caplog.records
        expected = "web.yaml:3: Ingress default/web: spec.rules[0]: there is no Service x; odd"
        assert record.getMessage() == expected
        assert record.levelno == logging.ERROR
        assert one.problems == {REF: (BAD, ODD)}


async def test_the_same_again_is_not_told_again_and_the_end_is(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    board = MemoryStatusBoard()
    async with logging_statuses(board) as one:
        await board.post(update(ODD))
        await until(lambda: len(caplog.records) == 1)
        await board.post(update(ODD))
        await board.post(update())
        await until(lambda: len(caplog.records) == 2)
        assert caplog.records[0].levelno == logging.WARNING
        assert "nothing is wrong any more" in caplog.records[1].getMessage()
        assert one.problems == {}


async def test_objects_that_are_in_no_file_are_not_told_of(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    board = MemoryStatusBoard()
    async with logging_statuses(board) as one:
        await board.post(update(BAD, ref=REF._replace(name="old")))
        await board.post(update(BAD))
        await until(lambda: bool(caplog.records))
        assert len(caplog.records) == 1
        assert one.problems == {REF: (BAD,)}
