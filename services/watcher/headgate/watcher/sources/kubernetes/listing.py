"""One list of one kind in one scope, in pages."""

from headgate.common.resources import JsonObject
from headgate.watcher.api.kinds import WatchTarget
from headgate.watcher.api.transport import KubernetesTransport
from headgate.watcher.api.wire import decode_list
from headgate.watcher.errors import Expired

PAGE = 500


async def list_target(transport: KubernetesTransport, target: WatchTarget) -> tuple[list[JsonObject], str]:
    """Return all objects, each with `apiVersion` and `kind`, and the version of the list.

    Raises:
        ApiError, ClusterConfigError: as the transport's requests.
    """
    try:
        return await _read_pages(transport, target, PAGE)
    except Expired:
        # Pages of a version that was compacted between two of them: one answer cannot expire.
        return await _read_pages(transport, target, None)


async def _read_pages(
    transport: KubernetesTransport, target: WatchTarget, limit: int | None
) -> tuple[list[JsonObject], str]:
    objects: list[JsonObject] = []
    query = target.selectors | ({"limit": str(limit)} if limit else {})
    while True:
        page = decode_list(await transport.request("GET", target.path, query=query))
        objects.extend(map(target.complete, page.items or ()))
        if not page.metadata.continue_token:
            return objects, page.metadata.resource_version
        query["continue"] = page.metadata.continue_token
