"""Scenarios in a cluster are run on the fake API server here; tests/cluster runs them on a real one."""

from collections.abc import AsyncIterator

import pytest_asyncio

from fakes.kubernetes.api import FakeKubernetes
from fakes.kubernetes.hands import FakeHands


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def hands() -> AsyncIterator[FakeHands]:
    async with FakeKubernetes(allows_loopback=True) as api:
        yield FakeHands(api)
