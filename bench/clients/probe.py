"""Asks again and again on one keep-alive connection until an expected answer comes."""

import contextlib
import http.client
import time
from dataclasses import dataclass

from bench.errors import BenchError

SPACING_S = 0.001


@dataclass
class Probe:
    """One client of one host."""

    port: int
    host: str
    failures: int = 0
    """Answers other than 200 and broken connections, so far."""

    def __post_init__(self) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=5)

    def ask(self) -> tuple[int, str]:
        """Return status and body of one request; status 0 if there was no answer."""
        try:
            self._connection.request("GET", "/", headers={"Host": self.host})
            answer = self._connection.getresponse()
            return answer.status, answer.read().decode(errors="replace")
        except (OSError, http.client.HTTPException) as error:
            self._connection.close()
            return 0, str(error)

    def headers(self, path: str) -> dict[str, str]:
        """Return the headers of an answer of status 200; none if there was no such answer."""
        try:
            self._connection.request("GET", path, headers={"Host": self.host})
            answer = self._connection.getresponse()
            answer.read()
            return dict(answer.headers) if answer.status == 200 else {}
        except (OSError, http.client.HTTPException):
            self._connection.close()
            return {}

    def wait_for(self, body: str, timeout_s: float) -> float:
        """Ask every millisecond until the body is the expected one; return the monotonic time of that answer.

        Raises:
            BenchError: it did not come in time.
        """
        end = time.monotonic() + timeout_s
        while True:
            status, found = self.ask()
            now = time.monotonic()
            if status == 200 and found == body:
                return now
            if status != 200:
                self.failures += 1
            if now > end:
                raise BenchError(
                    f"{self.host} did not answer {body!r} within {timeout_s:g} s; last: {status} {found!r}"
                )
            time.sleep(SPACING_S)

    def close(self) -> None:
        """Close the connection."""
        with contextlib.suppress(OSError):
            self._connection.close()
