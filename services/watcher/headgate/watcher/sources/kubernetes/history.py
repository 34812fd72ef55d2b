"""Proof, after a watch was cut, that the server's history is the one that was followed: then nothing has to be listed.

A store that was restored from a backup counts on from an older version, so a version alone proves nothing. Two things
do, each for the price of one small request:

- the object of the last event still has the version that it got by it. The history then has that event, and a watch
  from its version on misses nothing of the kind, whatever came of other kinds. A deletion leaves no such object.
- our own Lease, written again and again on one unbroken chain of preconditions, has a later version than the last one
  that was seen, and is still as we wrote it. Only a restore that begins and ends between two renewals, without failing
  one, would go unnoticed; it takes a stop of all API servers. Kinds that are kept in another etcd than Leases
  (`--etcd-servers-overrides`) have versions of their own, so for these it proves nothing of a restore of theirs alone.

Where neither holds there is a list, as after an expired version.
"""

from dataclasses import replace
from typing import NamedTuple, Protocol

from headgate.common.resources import JsonObject
from headgate.watcher.api.kinds import WatchTarget
from headgate.watcher.api.transport import KubernetesTransport
from headgate.watcher.api.wire import decode_list


class Chain(Protocol):
    """Writes of ours, each on condition that the one before is still in force."""

    @property
    def mark(self) -> int:
        """What tells an unbroken chain from the one before."""
        ...

    async def reaches(self, version: str, mark: int) -> bool:
        """Whether a version that was seen during an unbroken chain is in the server's history.

        Raises:
            ApiError: no answer.
        """
        ...


class _Witness(NamedTuple):
    """An object, and the version that it got by the last event."""

    namespace: str
    name: str
    version: str


class FollowedHistory:
    """What was seen last of one collection, and how it can be proven."""

    def __init__(self, target: WatchTarget, transport: KubernetesTransport, chain: Chain | None) -> None:
        """Begin with nothing seen.

        Args:
            target: the collection.
            transport: to the server.
            chain: our own writes; None: there are none.
        """
        self._target, self._transport, self._chain = target, transport, chain
        self._witness: _Witness | None = None
        self._mark = 0

    def saw_list(self) -> None:
        """Note that a list ended: what was deleted before it left no trace."""
        self._witness = None
        self.saw_version()

    def saw_applied(self, item: JsonObject) -> None:
        """Note the object of the last event."""
        metadata = item["metadata"]
        self._witness = _Witness(metadata.get("namespace", ""), metadata["name"], metadata.get("resourceVersion", ""))
        self.saw_version()

    def saw_deleted(self) -> None:
        """Note that the last event was a deletion."""
        self._witness = None
        self.saw_version()

    def saw_version(self) -> None:
        """Note that there is a newer version to go on from."""
        self._mark = self._chain.mark if self._chain else 0

    async def prove(self, version: str) -> str | None:
        """Return the version to watch from so that nothing is missed after `version`, the last one seen; None: list.

        Raises:
            ApiError: no answer.
        """
        if self._witness is not None and await self._is_unchanged(self._witness):
            return self._witness.version
        if self._chain is not None and await self._chain.reaches(version, self._mark):
            return version
        return None

    async def _is_unchanged(self, witness: _Witness) -> bool:
        inside = replace(self._target, namespace=witness.namespace)
        fields = filter(None, (f"metadata.name={witness.name}", self._target.field_selector))
        answer = await self._transport.request("GET", inside.path, query={"fieldSelector": ",".join(fields)})
        found = decode_list(answer).items or ()
        return [_version_of(item) for item in found] == [(witness.name, witness.version)]


def _version_of(item: JsonObject) -> tuple[str, str]:
    metadata = item.get("metadata") or {}
    return metadata.get("name", ""), metadata.get("resourceVersion", "")
