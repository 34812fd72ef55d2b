"""A person's decision about a rollout: everywhere now, or nowhere."""

from headgate.common.stores.opening import Stores
from headgate.operations.changing.outcome import Done, commit_errors, finish, greatest_served
from headgate.operations.changing.rollout_control import RolloutControl
from headgate.operations.committing.manual import ChangeRequest
from headgate.operations.tables.revisions import Image, find_image


async def promote(stores: Stores, table: str, request: ChangeRequest) -> Done:
    """Have all replicas serve the next table, also one that the fleet went back from.

    Raises:
        OperationError: it was not done.
        StoreError: the store did not do it.
    """
    served = await find_image(stores.snapshots, table, "HEAD")
    with commit_errors(f"table {table} was not promoted"):
        manifest = await (await _control(stores, table)).promote(request)
    return await finish(stores, served, manifest, "what was rolled out", [])


async def go_back(stores: Stores, table: str, request: ChangeRequest) -> Done:
    """Have all replicas serve what the others do; raises what `promote` does."""
    head = await find_image(stores.snapshots, table, "HEAD")
    current = head.manifest.rollout
    served = Image("next", current.next, head.manifest) if current else head
    with commit_errors(f"table {table} was not taken back"):
        manifest = await (await _control(stores, table)).go_back(request)
    base = manifest.rollout.base if manifest.rollout else manifest.version
    return await finish(stores, served, manifest, f"the routes of revision {base} everywhere", [])


async def _control(stores: Stores, table: str) -> RolloutControl:
    return RolloutControl(stores.snapshots, table, await greatest_served(stores, table))
