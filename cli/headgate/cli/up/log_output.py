"""The services' log lines on one terminal, each with its service's name before it.

Works on whole blocks, not on lines: an access log of tens of thousands of lines a second must cost next to nothing.
"""

from typing import BinaryIO

_COLOURS = (36, 33, 35, 32, 34, 96, 93, 95, 92, 94)


class LogOutput:
    """Where all lines go: `up`'s own standard output."""

    def __init__(self, sink: BinaryIO, *, width: int, colour: bool) -> None:
        self._sink = sink
        self._width = width
        self._colour = colour
        self._channels = 0
        self._is_read = True

    def channel(self, name: str) -> "LogChannel":
        """Make the channel of one service; each gets a colour of its own."""
        label = f"{name:<{self._width}} | "
        if self._colour:
            label = f"\x1b[{_COLOURS[self._channels % len(_COLOURS)]}m{label}\x1b[0m"
        self._channels += 1
        return LogChannel(self, label.encode())

    def write(self, block: bytes) -> None:
        """Write whole lines at once."""
        if not self._is_read:
            return
        try:
            self._sink.write(block)
            self._sink.flush()
        except (BrokenPipeError, ValueError):
            self._is_read = False  # `headgate up | head`: traffic goes on without a log


class LogChannel:
    """Prefixes what one service prints."""

    def __init__(self, output: LogOutput, prefix: bytes) -> None:
        self._output = output
        self._prefix = prefix
        self._rest = b""

    def feed(self, data: bytes) -> None:
        """Take what the service printed, as it comes; complete lines are passed on at once."""
        head, newline, rest = data.rpartition(b"\n")
        if not newline:
            self._rest += data
            return
        lines = (self._rest + head).replace(b"\n", b"\n" + self._prefix)
        self._rest = rest
        self._output.write(self._prefix + lines + b"\n")

    def say(self, text: str) -> None:
        """Write a line of our own."""
        self.close()
        self.feed(text.encode() + b"\n")

    def close(self) -> None:
        """Write a last line that had no end."""
        if self._rest:
            self.feed(b"\n")
