"""One large body through a proxy: `python -m bench.clients.transfer PORT HOST down|up BYTES [SECONDS]`.

With SECONDS the download is read slowly, or the upload goes to a slow reader, and it is given up after so long. Prints
a line of JSON: status, bytes and seconds from the request to the end of the answer.
"""

import json
import socket
import sys
import time
from dataclasses import asdict, dataclass

from bench.errors import BenchError
from bench.servers.bodies_origin import PACE_PIECE, PACE_S, PIECE

_TIMEOUT_S = 60.0


@dataclass(frozen=True)
class Transferred:
    """How a body came through."""

    status: int
    bytes: int
    seconds: float

    @property
    def megabytes_per_s(self) -> float:
        """Of 10^6 bytes."""
        return self.bytes / self.seconds / 1e6


def parse_transfer(output: str) -> Transferred:
    """Read what this program printed.

    Raises:
        BenchError: it is not that.
    """
    try:
        return Transferred(**json.loads(output))
    except (ValueError, TypeError) as error:
        raise BenchError(f"the transfer said no figures: {output[-300:]}") from error


def download(connection: socket.socket, host: str, length: int, patience_s: float | None) -> Transferred:
    """Read a body, slowly for so long if a patience is given."""
    began = time.monotonic()
    connection.sendall(f"GET /{length} HTTP/1.1\r\nHost: {host}\r\nAccept: */*\r\n\r\n".encode())
    status, first = _head(connection)
    taken = len(first)
    buffer = memoryview(bytearray(PIECE if patience_s is None else PACE_PIECE))
    while taken < length and (patience_s is None or time.monotonic() - began < patience_s):
        count = connection.recv_into(buffer)
        if not count:
            break
        taken += count
        if patience_s is not None:
            time.sleep(PACE_S)
    return Transferred(status, taken, time.monotonic() - began)


def upload(connection: socket.socket, host: str, length: int, patience_s: float | None) -> Transferred:
    """Send a body, to a slow reader for so long if a patience is given; `bytes` are those that were sent."""
    began = time.monotonic()
    path = "/" if patience_s is None else "/slow"
    head = f"POST {path} HTTP/1.1\r\nHost: {host}\r\nContent-Length: {length}\r\n\r\n"
    connection.sendall(head.encode())
    piece = memoryview(bytes(PIECE))
    sent = 0
    while sent < length:
        if patience_s is not None:
            left_s = patience_s - (time.monotonic() - began)
            if left_s <= 0:
                return Transferred(200, sent, time.monotonic() - began)
            connection.settimeout(left_s)
        try:
            sent += connection.send(piece[: length - sent])
        except TimeoutError:
            return Transferred(200, sent, time.monotonic() - began)
    status, body = _head(connection)
    while body and int(body) != length:  # the count may come in pieces
        more = connection.recv(100)
        if not more:
            raise BenchError(f"of {length} bytes {body!r} came through")
        body += more
    return Transferred(status, sent, time.monotonic() - began)


def _head(connection: socket.socket) -> tuple[int, bytes]:
    received = b""
    while b"\r\n\r\n" not in received:
        data = connection.recv(PACE_PIECE)
        if not data:
            raise BenchError(f"closed before the answer's head: {received[:200]!r}")
        received += data
    head, _, rest = received.partition(b"\r\n\r\n")
    return int(head.split()[1]), rest


def main() -> None:
    """Transfer and print."""
    port, host, direction, length = int(sys.argv[1]), sys.argv[2], sys.argv[3], int(sys.argv[4])
    patience_s = float(sys.argv[5]) if len(sys.argv) > 5 else None
    with socket.create_connection(("127.0.0.1", port), timeout=_TIMEOUT_S) as connection:
        move = download if direction == "down" else upload
        print(json.dumps(asdict(move(connection, host, length, patience_s))))


if __name__ == "__main__":
    main()
