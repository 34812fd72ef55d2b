"""What a cluster has now, asked once: for who looks at it and goes (`headgate audit`).

Only lists and discovery are asked for. A kind that is not there, or that may not be listed, is said like the others; an
API server that does not answer is an error, as no caller waits for it to come back.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from functools import partial
from typing import TypeVar

from headgate.common.deltas import SyncState
from headgate.common.resources import KindChoice, ResourceKind
from headgate.watcher.api.kinds import Discovery, WatchTarget
from headgate.watcher.api.transport import KubernetesTransport
from headgate.watcher.errors import Absent, Forbidden, Throttled
from headgate.watcher.sources import Listed, Unavailable
from headgate.watcher.sources.kubernetes.listing import list_target
from headgate.watcher.sources.kubernetes.source import KubernetesScope

ATTEMPTS = 5
"""For a server that asks for patience (429)."""
LONGEST_PAUSE_S = 10.0
"""Somebody waits at the terminal."""

T = TypeVar("T")


async def read_present(
    transport: KubernetesTransport, choices: Sequence[KindChoice], scope: KubernetesScope
) -> AsyncIterator[Listed | Unavailable]:
    """Yield each kind's objects, or why there are none; of several namespaces, each by itself.

    Raises:
        ApiError, ClusterConfigError: no answer, or none for these credentials.
    """
    discovery = Discovery(transport)
    for choice in scope.select(choices):
        found = await _patiently(partial(discovery.find, choice))
        if found is None:
            yield _absent(choice[0])
            continue
        for target in scope.targets_of(*found):
            yield await _read(transport, target)


async def _read(transport: KubernetesTransport, target: WatchTarget) -> Listed | Unavailable:
    try:
        objects, _ = await _patiently(partial(list_target, transport, target))
    except Absent:  # discovery is locked down, or the kind went away meanwhile
        return _absent(target.kind)
    except Forbidden as error:
        where = f"in namespace {target.namespace}" if target.namespace else "in all namespaces"
        right = f"to list {target.kind} {where if target.kind.namespaced else 'at the cluster scope'}"
        return Unavailable(target.kind, SyncState.FORBIDDEN, f"the right {right} is missing ({error.message})")
    return Listed(target.kind, objects)


def _absent(kind: ResourceKind) -> Unavailable:
    return Unavailable(kind, SyncState.ABSENT, f"the API server does not have {kind}")


async def _patiently(ask: Callable[[], Awaitable[T]]) -> T:
    for _ in range(ATTEMPTS - 1):
        try:
            return await ask()
        except Throttled as error:
            await asyncio.sleep(min(error.retry_after_s or 1.0, LONGEST_PAUSE_S))
    return await ask()
