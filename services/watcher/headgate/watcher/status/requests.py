"""Requests of the status writer to the API server: counted, and no more of them than a server is to bear."""

from prometheus_client import Counter

from headgate.common.resources import JsonObject
from headgate.watcher.api.transport import FIELD_MANAGER, KubernetesTransport
from headgate.watcher.api.wire import decode_object
from headgate.watcher.errors import ApiStatusError, WatcherError
from headgate.watcher.status.token_bucket import TokenBucket

HOPELESS = (400, 405, 413, 415, 422)
"""Answers that the same request gets for ever."""
STATUS_WRITES = Counter(
    "headgate_watcher_status_writes",
    "Requests that wrote a status, an Event, or what is made for a Gateway",
    ["what", "result"],
)


class StatusRequests:
    """Reads objects, patches their status, creates Events and what is made for Gateways."""

    def __init__(self, transport: KubernetesTransport, per_s: float, burst: int) -> None:
        """Bound the requests.

        Args:
            transport: of the cluster.
            per_s: status writes in the long run; five times as many reads are made, and half as many Events.
            burst: status writes at once; reads and Events in the same proportion.
        """
        self._transport = transport
        self._writes = TokenBucket(per_s, burst)
        self._reads = TokenBucket(per_s * 5, burst * 5)
        self._events = TokenBucket(per_s / 2, max(1, burst // 2))

    @property
    def server(self) -> str:
        """The API server, as messages name it."""
        return self._transport.description

    async def read(self, path: str) -> JsonObject:
        """Return an object.

        Raises:
            WatcherError: it is not there, or the server does not answer.
        """
        await self._reads.take()
        return decode_object(await self._transport.request("GET", path))

    async def patch_status(self, path: str, current: JsonObject, status: JsonObject) -> None:
        """Merge into the status of an object, provided that it is still as it was read.

        Raises:
            WriteConflict: it is not.
            WatcherError: the server does not take it, or does not answer.
        """
        await self._writes.take()
        metadata = current["metadata"]
        body = {
            "metadata": {"uid": metadata["uid"], "resourceVersion": metadata["resourceVersion"]},
            "status": status,
        }
        await self._send("status", "PATCH", f"{path}/status", body, "application/merge-patch+json")

    async def create(self, path: str, wanted: JsonObject) -> None:
        """Create an object that is made for another one.

        Raises:
            WriteConflict: one of that name is there already.
            WatcherError: the server does not take it, or does not answer.
        """
        await self._writes.take()
        await self._send("infrastructure", "POST", path, wanted, "application/json")

    async def patch_metadata(self, path: str, current: JsonObject, changes: JsonObject) -> None:
        """Merge changes into the metadata of such an object, provided that it is still as it was read.

        Raises:
            WriteConflict: it is not.
            WatcherError: the server does not take it, or does not answer.
        """
        await self._writes.take()
        read = {name: current["metadata"][name] for name in ("uid", "resourceVersion")}
        body = {"metadata": {**changes, **read}}
        await self._send("infrastructure", "PATCH", path, body, "application/merge-patch+json")

    async def create_event(self, path: str, event: JsonObject) -> None:
        """Create an Event.

        Raises:
            WriteConflict: it is there already.
            WatcherError: the server does not take it, or does not answer.
        """
        await self._events.take()
        await self._send("event", "POST", path, event, "application/json")

    async def _send(self, what: str, method: str, path: str, body: JsonObject, content_type: str) -> None:
        try:
            await self._transport.request(
                method, path, body=body, content_type=content_type, query={"fieldManager": FIELD_MANAGER}
            )
        except WatcherError as error:
            STATUS_WRITES.labels(what, str(error.status) if isinstance(error, ApiStatusError) else "no answer").inc()
            raise
        STATUS_WRITES.labels(what, "ok").inc()
