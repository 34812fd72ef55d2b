"""Which of a cluster's watchers writes: a Lease in the cluster itself (coordination.k8s.io/v1), as client-go has them.

In the cluster and not on the bus: who cannot reach the API server has nothing to publish, and `kubectl get lease` shows
who it is. The version of a lease is its resourceVersion, which the API server compares when it is patched.
"""

import math
from datetime import UTC, datetime
from pathlib import Path

from headgate.common.errors import Conflict, NotPermitted, StoreUnavailable
from headgate.common.leadership.leases import NOBODYS, Lease, StoredLease
from headgate.common.resources import JsonObject
from headgate.watcher.api.transport import FIELD_MANAGER, KubernetesTransport
from headgate.watcher.api.wire import decode_object
from headgate.watcher.errors import Absent, Forbidden, WatcherError, WriteConflict

_VERSION = "coordination.k8s.io/v1"
_REQUEST_S = 10.0
_POD_NAMESPACE = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")


def pod_namespace() -> str:
    """Return the namespace of the pod that we run in; outside of a cluster nothing."""
    try:
        return _POD_NAMESPACE.read_text().strip()
    except OSError:
        return ""


class KubernetesLeaseBoard:
    """`LeaseBoard` on the Leases of one namespace; durations are whole seconds there, and rounded up."""

    def __init__(self, transport: KubernetesTransport, namespace: str) -> None:
        """Choose the namespace."""
        self._transport = transport
        self._namespace = namespace
        self._path = f"/apis/{_VERSION}/namespaces/{namespace}/leases"
        self.chain = LeaseChain(transport)
        """The Leases that were written here."""

    async def read(self, name: str) -> StoredLease | None:
        """Return a Lease; None if there is none."""
        try:
            return _stored(await self._request("GET", f"{self._path}/{name}"))
        except Absent:
            return None

    async def write(self, name: str, lease: Lease, expected: str | None) -> StoredLease:
        """Create a Lease, or replace what is ours in one that is still the one that was read."""
        try:
            stored = await self._write(name, lease, expected)
        except BaseException:
            self.chain.end()
            raise
        self.chain.add(f"{self._path}/{name}", stored.version, expected)
        return stored

    async def _write(self, name: str, lease: Lease, expected: str | None) -> StoredLease:
        spec = _spec(lease)
        if expected is not None:
            patch = {"metadata": {"resourceVersion": expected}, "spec": spec}
            try:
                return _stored(await self._request("PATCH", f"{self._path}/{name}", patch))
            except Absent as error:
                raise Conflict(f"lease {name} is gone") from error
        metadata = {"name": name, "namespace": self._namespace}
        created = {"apiVersion": _VERSION, "kind": "Lease", "metadata": metadata, "spec": spec}
        try:
            return _stored(await self._request("POST", self._path, created))
        except Absent as error:
            raise NotPermitted(f"no Leases in namespace {self._namespace}: {error}") from error

    async def _request(self, method: str, path: str, body: JsonObject | None = None) -> JsonObject:
        try:
            answer = await self._transport.request(
                method,
                path,
                body=body,
                query={"fieldManager": FIELD_MANAGER} if body else None,
                content_type="application/merge-patch+json" if method == "PATCH" else "application/json",
                timeout_s=_REQUEST_S,
            )
            return decode_object(answer)
        except Absent:
            raise
        except Forbidden as error:
            raise NotPermitted(f"{error}; a Role needs get, create and patch of leases in {_VERSION}") from error
        except WriteConflict as error:
            raise Conflict(str(error)) from error
        except WatcherError as error:
            raise StoreUnavailable(f"{self._transport.description}: {error}") from error


class LeaseChain:
    """Writes of one Lease, each on condition that the one before was still in force: they share one history.

    The chain begins again when a write fails, and when another one wrote in between.
    """

    def __init__(self, transport: KubernetesTransport) -> None:
        self._transport = transport
        self._path, self._version = "", ""
        self.mark = 0
        """Number of the chain."""

    def add(self, path: str, version: str, expected: str | None) -> None:
        """Note a write that was confirmed."""
        if not expected or (path, expected) != (self._path, self._version):
            self.mark += 1
        self._path, self._version = path, version

    def end(self) -> None:
        """Note that a write failed."""
        self._path, self._version = "", ""

    async def reaches(self, version: str, mark: int) -> bool:
        """Whether a version that was seen during a chain is in the server's history: it has our later write.

        Only numbers can be compared, as API servers give them (KEP-5504).

        Raises:
            ApiError: no answer.
        """
        path, written = self._path, self._version
        if mark != self.mark or not (version.isdecimal() and written.isdecimal()) or int(version) > int(written):
            return False
        try:
            found = decode_object(await self._transport.request("GET", path, timeout_s=_REQUEST_S))
        except (Absent, Forbidden):
            return False
        # We may have written it again while we asked.
        return mark == self.mark and found["metadata"].get("resourceVersion") in (written, self._version)


def _spec(lease: Lease) -> JsonObject:
    return {
        "holderIdentity": lease.holder,
        "leaseDurationSeconds": max(1, math.ceil(lease.duration_s)),
        "acquireTime": _micro_time(lease.acquired_at),
        "renewTime": _micro_time(lease.renewed_at),
        "leaseTransitions": lease.transitions,
    }


def _micro_time(time: datetime) -> str:
    """Microseconds, always six digits: the API server reads nothing else."""
    return f"{time.astimezone(UTC):%Y-%m-%dT%H:%M:%S.%fZ}"


def _stored(found: JsonObject) -> StoredLease:
    spec = found.get("spec") or {}
    try:
        lease = Lease(
            holder=spec.get("holderIdentity") or "",
            duration_s=spec.get("leaseDurationSeconds") or 1,
            acquired_at=spec.get("acquireTime") or NOBODYS.acquired_at,
            renewed_at=spec.get("renewTime") or NOBODYS.renewed_at,
            transitions=spec.get("leaseTransitions") or 0,
        )
    except ValueError:  # which the API server would not have stored
        lease = NOBODYS
    return StoredLease(lease, found["metadata"]["resourceVersion"])
