"""What the watcher remembers of an API server that does not do what it is asked."""

import asyncio

import pytest

from headgate.watcher.api.trouble import REPEAT_S, TroubleLog
from headgate.watcher.errors import Expired, Unauthorized


async def test_recent_trouble_is_remembered_once_and_forgotten_after_a_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    trouble = TroubleLog()
    for _ in range(2):
        trouble.report("secrets", Unauthorized(401, "Unauthorized", "no"), "https://api")
    trouble.report("secrets", Expired(410, "Expired", "too old"), "https://api")
    assert trouble.recent == [
        "the API server https://api refuses our credentials; check the token or client certificate"
    ]
    loop = asyncio.get_running_loop()
    later = loop.time() + REPEAT_S
    monkeypatch.setattr(loop, "time", lambda: later)
    assert trouble.recent == []
