"""Gives and takes large bodies: `python -m bench.servers.bodies_origin PORT`.

`GET /<bytes>` is answered with so many; the body of a POST is read to its end and the answer is how many bytes came.
With the path `/slow` it is read as slowly as `PACE` says. A thread for each connection, as there are few.
"""

import signal
import socketserver
import sys
import time
from http.server import BaseHTTPRequestHandler
from typing import BinaryIO, cast

PIECE = 256 * 1024
PACE_PIECE, PACE_S = 64 * 1024, 0.01
"""Whoever is slow reads so many bytes, then rests for so long: at most 6.5 MB/s."""
_ZEROS = bytes(PIECE)


def take(source: BinaryIO, length: int, *, is_slow: bool) -> int:
    """Read a body of known length; return how much came."""
    buffer = memoryview(bytearray(PACE_PIECE if is_slow else PIECE))
    taken = 0
    while taken < length:
        count = source.readinto1(buffer[: length - taken])  # type: ignore[attr-defined]
        if not count:
            break
        taken += count
        if is_slow:
            time.sleep(PACE_S)
    return taken


def take_chunked(source: BinaryIO, *, is_slow: bool) -> int:
    """Read a chunked body; return how much came before its end, or the connection's."""
    taken = 0
    while length := int(source.readline().split(b";")[0] or b"0", 16):
        taken += take(source, length, is_slow=is_slow)
        source.readline()
    source.readline()
    return taken


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    rbufsize = PIECE

    def do_GET(self) -> None:
        length = int(self.path.strip("/") or "0")
        self.send_response(200)
        self.send_header("Content-Length", str(length))
        self.end_headers()
        while length:
            piece = min(length, PIECE)
            self.connection.sendall(_ZEROS[:piece])
            length -= piece

    def do_POST(self) -> None:
        is_slow = self.path == "/slow"
        source = cast(BinaryIO, self.rfile)
        if length := self.headers["Content-Length"]:
            taken = take(source, int(length), is_slow=is_slow)
        else:
            taken = take_chunked(source, is_slow=is_slow)
        body = str(taken).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


class _Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True
    request_queue_size = 1024

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that goes away is no news."""


def main() -> None:
    """Serve until SIGTERM."""
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(0))
    with _Server(("127.0.0.1", int(sys.argv[1])), _Handler) as server:
        server.serve_forever(poll_interval=3600)


if __name__ == "__main__":
    main()
