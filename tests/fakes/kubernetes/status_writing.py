"""A status writer before the fake API server."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

from fakes.kubernetes.api import FakeKubernetes
from headgate.common.leadership.leadership import Leadership
from headgate.common.resources import ObjectRef
from headgate.common.service.tasks import cancel
from headgate.common.status import ConditionType, LoadBalancerAddress, StatusCondition, StatusUpdate
from headgate.common.stores.memory.boards import MemoryStatusBoard
from headgate.watcher.api.transport import KubernetesTransport
from headgate.watcher.status.writer import StatusWriter

EDGE = (LoadBalancerAddress(ip="192.0.2.7"),)

START = datetime(2026, 3, 1, 12, tzinfo=UTC)


def now() -> datetime:
    """The wall clock of these tests, which jumps as the loop's does."""
    return START + timedelta(seconds=asyncio.get_running_loop().time())


@asynccontextmanager
async def writing(
    api: FakeKubernetes,
    tmp_path: Path,
    board: MemoryStatusBoard | None = None,
    leadership: Leadership | None = None,
    *,
    makes_accounts: bool = False,
) -> AsyncIterator[tuple[MemoryStatusBoard, StatusWriter]]:
    board = board or MemoryStatusBoard()
    transport = KubernetesTransport(api.write_kubeconfig(tmp_path / "config"))
    writer = StatusWriter(
        board,
        "east",
        transport,
        instance="watcher-0",
        leadership=leadership,
        makes_accounts=makes_accounts,
        rng=Random(3),
        now=now,
    )
    running = asyncio.create_task(writer.run())
    try:
        yield board, writer
    finally:
        await cancel(running)
        await transport.close()


def wanted(name: str, **changes: Any) -> StatusUpdate:
    return StatusUpdate(
        **{
            "ref": ObjectRef("east", "networking.k8s.io", "ingresses", "default", name),
            "api_version": "networking.k8s.io/v1",
            "kind": "Ingress",
            "uid": "",
            "is_accepted": True,
            "addresses": EDGE,
            "at": now(),
            **changes,
        }
    )


def addresses(api: FakeKubernetes, name: str) -> list[Any]:
    found = api.get("ingresses", name).get("status", {}).get("loadBalancer", {}).get("ingress", [])
    assert isinstance(found, list)
    return found


# Conditions of Services


def condition(status: str = "True", message: str = "", since: float = 0.0) -> StatusCondition:
    return StatusCondition(
        type=ConditionType.ACCEPTED,
        status=status,  # type: ignore[arg-type]
        reason="Accepted" if status == "True" else "Invalid",
        message=message,
        since=START + timedelta(seconds=since),
    )
