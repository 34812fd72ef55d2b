"""Log lines about an API server that does not do what we ask: each once, then at most once a minute.

Eight kinds in fifty namespaces meet the same outage at the same moment; one line says it.
"""

import asyncio
import logging

from headgate.watcher.errors import (
    ApiError,
    ApiUnreachable,
    ApiUntrusted,
    ClusterConfigError,
    Expired,
    Forbidden,
    Unauthorized,
    WatcherError,
)

log = logging.getLogger(__name__)

REPEAT_S = 60.0
_REMEMBERED = 1000


class TroubleLog:
    """What was complained about, and when."""

    def __init__(self) -> None:
        self._said_at: dict[str, float] = {}
        self._met_at: dict[str, float] = {}

    @property
    def recent(self) -> list[str]:
        """What was met within the last minute; something that was mended meanwhile may be among it."""
        now = asyncio.get_running_loop().time()
        return [text for text, met_at in self._met_at.items() if now - met_at < REPEAT_S]

    def report(self, what: str, error: WatcherError, server: str, done: str = "read") -> None:
        """Say that something could not be done, and what to check."""
        if isinstance(error, Expired):
            log.debug("%s: %s; listing again", what, error)  # happens to everyone who was away for minutes
        elif isinstance(error, ApiUntrusted):
            self._say(
                f"no connection to the API server {server}: {error}; put the right one into certificate-authority-data "
                "of the kubeconfig; what is known stays in force"
            )
        elif isinstance(error, ApiUnreachable):
            self._say(
                f"no answer from the API server {server}: {error}; check that it runs, that the address is right and "
                "that no firewall is between; what is known stays in force"
            )
        elif isinstance(error, ClusterConfigError):
            self._say(str(error))
        elif isinstance(error, Unauthorized):
            self._say(f"the API server {server} refuses our credentials; check the token or client certificate")
        elif isinstance(error, Forbidden):
            self._say(f"{what} cannot be {done}: {error.message}; give the right with a Role or ClusterRole")
        elif isinstance(error, ApiError):
            self._say(f"{what}: the API server answered {error}")

    def _say(self, text: str) -> None:
        now = asyncio.get_running_loop().time()
        if len(self._met_at) >= _REMEMBERED:
            self._met_at.clear()
        self._met_at[text] = now
        if now - self._said_at.get(text, -REPEAT_S) < REPEAT_S:
            return
        if len(self._said_at) >= _REMEMBERED:
            self._said_at.clear()
        self._said_at[text] = now
        log.warning(text)
