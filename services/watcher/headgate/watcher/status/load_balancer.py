"""What to write into an Ingress' `status.loadBalancer.ingress`, if anything.

The list is atomic: who wrote it last wrote all of it, so others' entries are kept by repeating them. Which ones are
ours is known from what we want, and wanted before. Of a list that somebody else wrote last nothing is taken away when
an object is no longer ours: another controller may have taken it over, at the same addresses.
"""

from collections.abc import Sequence

from headgate.common.resources import JsonObject
from headgate.common.status import LoadBalancerAddress, StatusUpdate
from headgate.watcher.api.transport import FIELD_MANAGER


def ingress_status(update: StatusUpdate, current: JsonObject) -> JsonObject | None:
    """Return the part of the present Ingress' status to write; None if there is nothing to write."""
    if update.addresses is None:
        return None
    listed: Sequence[JsonObject] = ((current.get("status") or {}).get("loadBalancer") or {}).get("ingress") or ()
    present = [(_address(entry), entry) for entry in listed]
    if update.is_accepted and update.addresses:
        kept = [entry for address, entry in present if address not in update.withdrawn]
        there = {address for address, _ in present}
        wanted = [*kept, *(_entry(address) for address in update.addresses if address not in there)]
    elif _is_ours(current):
        ours = {*update.withdrawn, *update.addresses}
        wanted = [entry for address, entry in present if address not in ours]
    else:
        return None
    return None if wanted == [*listed] else {"loadBalancer": {"ingress": wanted or None}}


def _address(entry: JsonObject) -> LoadBalancerAddress:
    return LoadBalancerAddress(ip=entry.get("ip") or None, hostname=entry.get("hostname") or None)


def _entry(address: LoadBalancerAddress) -> JsonObject:
    return address.model_dump(exclude_none=True)


def _is_ours(current: JsonObject) -> bool:
    """Whether we were the last to write the addresses."""
    entries = current["metadata"].get("managedFields") or ()
    return any(
        entry.get("manager") == FIELD_MANAGER
        and "f:ingress" in entry.get("fieldsV1", {}).get("f:status", {}).get("f:loadBalancer", {})
        for entry in entries
    )
