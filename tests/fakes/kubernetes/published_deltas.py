"""Deltas as a publisher writes them, and what a log has of an object."""

from datetime import UTC, datetime

from fakes.translator.publishing import ObservedLog, service
from headgate.common.deltas import Delta, Operation
from headgate.common.resources import ObjectRef


def ref(name: str) -> ObjectRef:
    return ObjectRef("a", "", "services", "default", name)


def delta(name: str, version: str, operation: Operation = Operation.APPLY) -> Delta:
    content = service(name, version) if operation is Operation.APPLY else None
    return Delta(
        ref=ref(name),
        operation=operation,
        uid=f"uid-{name}",
        resource_version=version,
        observed_at=datetime.now(UTC),
        object=content,
    )


async def logged(log: ObservedLog) -> dict[str, tuple[str, bool]]:
    state = await log.read_state("a")
    return {ref.name: (one.resource_version, one.is_deleted) for ref, one in state.items()}
