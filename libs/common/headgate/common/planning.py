"""Plans: what the command asks of a table's translators before manifests are applied, and what it hears.

One request and one answer on `headgate.plan.<table>`; `bus.planning` carries them. The command reads manifests and the
log; the translator has the world in memory, and knows what objects mean. Objects are in a question as they would be in
the log: Secrets are sealed, for recipients that do not exist.

A question is compressed JSON with a few headers beside it. The translator reads the headers; the rest is read by the
process that answers, which it may end.
"""

import zlib
from collections.abc import Mapping
from enum import StrEnum
from typing import Final, NamedTuple, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from headgate.common.deltas import Delta, escape_token, unescape_token
from headgate.common.errors import DecodeError, TooLarge
from headgate.common.problems import Problem
from headgate.common.resources import ObjectRef
from headgate.common.table_diff import TableDiff

PLAN_PREFIX: Final = "headgate.plan"
MAX_MESSAGE_BYTES: Final = 1024 * 1024 - 4 * 1024
"""Of a question or an answer, compressed. The bus takes messages of 1 MiB, their headers included."""
MAX_CONTENT_BYTES: Final = 16 * 1024 * 1024
"""The same, uncompressed."""
MAX_OBJECTS: Final = 2000
_RELEASE, _CLUSTER = "Headgate-Release", "Headgate-Cluster"
_INCARNATION, _SEQUENCE = "Headgate-Log", "Headgate-Sequence"

M = TypeVar("M", bound=BaseModel)


def plan_subject(table: str) -> str:
    """Subject of the questions to a table's translators."""
    return f"{PLAN_PREFIX}.{escape_token(table)}"


class PlanBasis(NamedTuple):
    """What a question is about, before its objects are read: the headers."""

    release: str
    """Of the command. Another release may translate differently, and may not read the question."""
    cluster: str
    """That the objects are of."""
    incarnation: str
    """Of the log that the command sees."""
    sequence: int
    """Last one of that log: the answer is about all of it."""

    def as_headers(self) -> dict[str, str]:
        """Return it as headers."""
        cluster, log = escape_token(self.cluster), escape_token(self.incarnation)
        return {_RELEASE: self.release, _CLUSTER: cluster, _INCARNATION: log, _SEQUENCE: str(self.sequence)}


class PlanQuestion(BaseModel):
    """Objects as they would be in the log."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    deltas: tuple[Delta, ...]


class PlanOutcome(StrEnum):
    """How a question was taken."""

    PLANNED = "planned"
    OTHER_RELEASE = "other-release"
    NOT_READY = "not-ready"
    """The translator does not know the whole cluster, or has not read so much of the log."""
    BUSY = "busy"
    """Others are asking."""
    TOO_LARGE = "too-large"
    """The answer is larger than the bus takes."""
    FAILED = "failed"
    """It took more time or memory than it may, or a mistake of ours kept it from being made."""


class PlannedObject(BaseModel):
    """How one of the objects would stand."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    ref: ObjectRef
    problems: tuple[Problem, ...] = ()
    foreign: str = ""
    """Why it is none of ours; empty if it is."""


class PlanAnswer(BaseModel):
    """What would change."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    outcome: PlanOutcome
    detail: str = ""
    """Why there is no plan."""
    diff: TableDiff = TableDiff()
    objects: tuple[PlannedObject, ...] = ()
    """Those with something to say of."""
    consequences: tuple[str, ...] = ()
    """Routes that other namespaces take over, and guards that go."""


def read_basis(headers: Mapping[str, str]) -> PlanBasis:
    """Read the headers of a question.

    Raises:
        DecodeError: they are none.
    """
    try:
        names = (headers[name] for name in (_CLUSTER, _INCARNATION))
        cluster, incarnation = map(unescape_token, names)
        return PlanBasis(headers[_RELEASE], cluster, incarnation, int(headers[_SEQUENCE]))
    except (KeyError, ValueError) as error:
        raise DecodeError(f"not a question about a plan: {error!r}") from error


def encode(message: PlanQuestion | PlanAnswer) -> bytes:
    """Encode a question or an answer.

    Raises:
        TooLarge: it is larger than the bus takes.
    """
    content = message.model_dump_json(exclude_defaults=True).encode()
    compressed = zlib.compress(content) if len(content) <= MAX_CONTENT_BYTES else content
    if len(compressed) > MAX_MESSAGE_BYTES:
        raise TooLarge(f"{len(content):,} bytes are more than a message holds")
    return compressed


def decode_question(content: bytes) -> PlanQuestion:
    """Decode the content of a question.

    Raises:
        DecodeError: it is none, or is larger than a question may be.
    """
    return _decode(content, PlanQuestion)


def decode_answer(content: bytes) -> PlanAnswer:
    """Decode an answer; raises what `decode_question` does."""
    return _decode(content, PlanAnswer)


def _decode(content: bytes, model: type[M]) -> M:
    inflating = zlib.decompressobj()
    try:
        inflated = inflating.decompress(content, MAX_CONTENT_BYTES)
        if not inflating.eof:
            raise DecodeError("it is cut off, or larger than it may be")
        return model.model_validate_json(inflated)
    except zlib.error as error:
        raise DecodeError(f"not compressed as expected: {error}") from error
    except ValidationError as error:
        raise DecodeError(f"not a {model.__name__}: {error.error_count()} fields are wrong") from error
