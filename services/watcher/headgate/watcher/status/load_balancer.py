"""What to write into an Ingress' `status.loadBalancer.ingress`, if anything.

The list is atomic: who wrote it last wrote all of it. Who that was the API server remembers in `managedFields`, so
that also after a restart nothing is taken away that another controller wrote.
"""

from collections.abc import Sequence

from headgate.common.resources import JsonObject
from headgate.common.status import LoadBalancerAddress, StatusUpdate

FIELD_MANAGER = "headgate"


def addresses_to_write(update: StatusUpdate, current: JsonObject) -> Sequence[LoadBalancerAddress] | None:
    """Return the addresses that have to be written to the present object; None if there is nothing to write."""
    if update.addresses is None or (update.uid and current["metadata"].get("uid") != update.uid):
        return None
    written = _addresses_of(current)
    if update.is_accepted and update.addresses:
        return None if set(written) == set(update.addresses) else update.addresses
    return () if written and not update.addresses and _is_ours(current) else None


def status_patch(current: JsonObject, addresses: Sequence[LoadBalancerAddress]) -> JsonObject:
    """Return the merge patch; it fails with a conflict if the object is not `current` any more."""
    metadata = current["metadata"]
    wanted = [address.model_dump(exclude_none=True) for address in addresses] or None
    return {
        "metadata": {"uid": metadata["uid"], "resourceVersion": metadata["resourceVersion"]},
        "status": {"loadBalancer": {"ingress": wanted}},
    }


def _addresses_of(current: JsonObject) -> list[LoadBalancerAddress]:
    listed = ((current.get("status") or {}).get("loadBalancer") or {}).get("ingress") or ()
    return [LoadBalancerAddress(ip=item.get("ip") or None, hostname=item.get("hostname") or None) for item in listed]


def _is_ours(current: JsonObject) -> bool:
    """Whether we were the last to write the addresses."""
    entries = current["metadata"].get("managedFields") or ()
    return any(
        entry.get("manager") == FIELD_MANAGER
        and "f:ingress" in entry.get("fieldsV1", {}).get("f:status", {}).get("f:loadBalancer", {})
        for entry in entries
    )
