"""Coarse time for everything that does not need better: deadlines, log lines, the Date header.

One timer per server ticks a few times a second. Connections carry a deadline as a number and are swept on each tick;
a timer handle per request would cost more than parsing its head.
"""

import time
from email.utils import formatdate


class Clock:
    """Time as of the last tick."""

    __slots__ = ("_second", "date_line", "log_time", "now", "tick_s")

    def __init__(self, tick_s: float) -> None:
        self.tick_s = tick_s
        """Longest age of what this clock says, in seconds."""
        self.now = 0.0
        """Monotonic seconds, `tick_s` ahead: a deadline of `now + timeout` never comes early."""
        self.date_line = b""
        """`Date` header line."""
        self.log_time = b""
        """Time as in the combined log format."""
        self._second = 0
        self.tick()

    def tick(self) -> None:
        """Read the time."""
        self.now = time.monotonic() + self.tick_s
        wall = time.time()
        if int(wall) != self._second:
            self._second = int(wall)
            self.date_line = f"Date: {formatdate(wall, usegmt=True)}\r\n".encode()
            self.log_time = time.strftime("%d/%b/%Y:%H:%M:%S +0000", time.gmtime(wall)).encode()
