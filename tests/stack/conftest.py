"""The stack, once for each file of tests."""

import shutil
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from stack.engine import ROOT
from stack.running import Stack


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def stack(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Stack]:
    """The stack from nothing, and nothing of it afterwards."""
    folder = tmp_path_factory.mktemp("stack") / "manifests"
    shutil.copytree(ROOT / "examples" / "stack", folder)
    for each in (folder, *folder.parents[:3]):
        each.chmod(0o755)  # Read by the watcher's user in its container.
    stack = Stack(folder)
    await stack.end()
    try:
        yield stack
    finally:
        await stack.end()
        assert await stack.containers() == []
