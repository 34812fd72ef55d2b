import asyncio
from collections.abc import Callable, Mapping

import uvloop


def pytest_asyncio_loop_factories() -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
    """The loop that serves in production, and the one whose TLS is written in Python: they call different methods."""
    return {"uvloop": uvloop.new_event_loop, "asyncio": asyncio.new_event_loop}
