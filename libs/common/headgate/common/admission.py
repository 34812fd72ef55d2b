"""Admission: what a watcher asks of translators before an object is let into its cluster, and what it hears.

One request and one answer for each table, on `headgate.admission.<cluster>.<table>`; `bus_admission` carries them. The
watcher knows Kubernetes and decides what to say to it; the translator knows what objects mean, and what else there is.
"""

from enum import StrEnum

from pydantic import BaseModel, ConfigDict, ValidationError

from headgate.common.deltas import escape_token
from headgate.common.errors import DecodeError
from headgate.common.problems import Problem
from headgate.common.resources import JsonObject, ObjectRef

ADMISSION_PREFIX = "headgate.admission"
MAX_PROPOSAL_BYTES = 1024 * 1024 - 4 * 1024
"""The bus takes messages of 1 MiB, their headers included."""


def admission_subject(cluster: str, table: str) -> str:
    """Subject of the questions to a table's translators about a cluster's objects."""
    return f"{ADMISSION_PREFIX}.{escape_token(cluster)}.{escape_token(table)}"


class NamedObject(BaseModel):
    """A Secret or ConfigMap that a proposed object names, and that is in the log only once the object is."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    ref: ObjectRef
    object: JsonObject
    """As a delta would have it."""


class Proposal(BaseModel):
    """An object as it would be."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    ref: ObjectRef
    object: JsonObject
    """As a delta would have it: stripped, a Secret sealed."""
    is_update: bool = False
    """Whether it is there already."""
    before: JsonObject | None = None
    """Of an update, the object as it is; None where both are too large together, and the translator knows it anyway."""
    named: tuple[NamedObject, ...] = ()
    """What it names and no other object does, as far as there is room."""


class Basis(StrEnum):
    """Where a problem comes from."""

    OWN = "own"
    """The object itself: nothing but a change of it can mend this."""
    CONFLICT = "conflict"
    """Another object has what this one claims, or would lose it."""
    REFERENCE = "reference"
    """Something that it refers to is missing or cannot be used; that may come, or be mended, without it."""
    CONSEQUENCE = "consequence"
    """Others that refer to it would no longer find what they need."""


class Finding(BaseModel):
    """Something wrong with a proposal."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    problem: Problem
    basis: Basis
    is_new: bool = True
    """False if the object as it is now has the same problem."""


class Outcome(StrEnum):
    """How a proposal was taken."""

    JUDGED = "judged"
    FOREIGN = "foreign"
    """It is none of ours."""
    NOT_SYNCED = "not-synced"
    """The translator does not know the whole cluster yet."""
    FAILED = "failed"
    """A mistake of ours kept it from being judged."""


class Opinion(BaseModel):
    """What a translator says of a proposal."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    outcome: Outcome
    findings: tuple[Finding, ...] = ()
    """New errors first, then errors that the object has already, then warnings."""
    omitted: int = 0
    """How many more there are."""
    detail: str = ""
    """Why it was not judged."""


def decode_proposal(content: bytes) -> Proposal:
    """Decode a question.

    Raises:
        DecodeError: it is none.
    """
    try:
        return Proposal.model_validate_json(content)
    except ValidationError as error:
        raise DecodeError(f"not a proposal: {error.error_count()} fields are wrong") from error


def decode_opinion(content: bytes) -> Opinion:
    """Decode an answer.

    Raises:
        DecodeError: it is none.
    """
    try:
        return Opinion.model_validate_json(content)
    except ValidationError as error:
        raise DecodeError(f"not an opinion: {error.error_count()} fields are wrong") from error
