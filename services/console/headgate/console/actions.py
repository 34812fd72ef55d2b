"""What an operator may change: tables and clusters, each with a reason that stands in the history under their name."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final

from headgate.common.clusters import Drain
from headgate.console.access.people import Person
from headgate.console.live.view import LiveView
from headgate.operations.changing.outcome import Done
from headgate.operations.changing.rollback import roll_back, unpin
from headgate.operations.changing.rollout import go_back, promote
from headgate.operations.clusters.decisions import change_cluster
from headgate.operations.committing.manual import ChangeRequest
from headgate.operations.errors import InvalidRequest

ACTIONS: Final = ("rollback", "unpin", "promote", "abort", "drain", "undrain")
"""`abort` takes a rollout back."""
MAX_REASON: Final = 500


async def act(view: LiveView, person: Person, said: Mapping[str, Any]) -> dict[str, Any]:
    """Do what an operator wants, or say what it would do.

    Args:
        view: with the stores.
        person: who wants it.
        said: `action`, `reason`, and what it is about: `revision` or `cluster`; `dry_run` for the first two.

    Raises:
        InvalidRequest: something is missing, or cannot be.
        OperationError: it was not done.
        StoreError: the store did not do it.
    """
    action, reason = str(said.get("action", "")), str(said.get("reason", "")).strip()
    is_dry = bool(said.get("dry_run"))
    if action not in ACTIONS:
        raise InvalidRequest(f"action: {action!r} is none of {', '.join(ACTIONS)}")
    if not reason and not is_dry:
        raise InvalidRequest("reason: say why, for those who read the history")
    if len(reason) > MAX_REASON:
        raise InvalidRequest(f"reason: at most {MAX_REASON} characters")
    request = ChangeRequest(person.name, datetime.now(UTC), reason)
    if action in ("drain", "undrain"):
        return await _drain(view, person, said, reason, is_drained=action == "drain")
    return (await _change_table(view, action, said, request, dry_run=is_dry)).as_document(view.table)


async def _change_table(
    view: LiveView, action: str, said: Mapping[str, Any], request: ChangeRequest, *, dry_run: bool
) -> Done:
    match action:
        case "rollback":
            revision = str(said.get("revision", ""))
            if not revision:
                raise InvalidRequest("revision: say which, such as 57 or HEAD~1")
            return await roll_back(view.stores, view.table, revision, request, is_frozen=False, dry_run=dry_run)
        case "unpin":
            return await unpin(view.stores, view.table, request, dry_run=dry_run)
    if dry_run:
        raise InvalidRequest(f"dry_run is for rollback and unpin; {action} does what /rollout shows")
    return await (promote if action == "promote" else go_back)(view.stores, view.table, request)


async def _drain(
    view: LiveView, person: Person, said: Mapping[str, Any], reason: str, *, is_drained: bool
) -> dict[str, Any]:
    cluster = str(said.get("cluster", ""))
    if not cluster:
        raise InvalidRequest("cluster: say which")
    drained = Drain(by=person.name, at=datetime.now(UTC), reason=reason) if is_drained else None
    settings = await change_cluster(view.stores, view.table, cluster, person.name, {"drained": drained})
    return {"cluster": cluster, **settings.model_dump(mode="json")}
