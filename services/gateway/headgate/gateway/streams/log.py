"""The access log's line of a finished connection or UDP session."""

import json
import time
from enum import IntEnum
from typing import NamedTuple


class Status(IntEnum):
    """How a connection ended; the numbers of nginx's `$status` in streams."""

    OK = 200
    BAD_DATA = 400
    """The client did not begin as the route asks."""
    FORBIDDEN = 403
    """The client's address is not allowed."""
    FAILED = 500
    """By a fault of the gateway or of the route."""
    NO_UPSTREAM = 502
    """There was no endpoint, or none took the connection."""
    TOO_MANY = 503
    """The route has as many as it may."""


class StreamRecord(NamedTuple):
    """One finished connection or session."""

    protocol: str
    """`tcp`, `udp` or `tls`."""
    client: str
    port: int
    """That the client connected to."""
    server_name: str
    status: Status
    received: int
    """Bytes from the client."""
    sent: int
    """Bytes to the client."""
    seconds: float
    route: str
    upstream: str
    endpoint: str
    reason: str
    """What went wrong; empty if nothing did."""


def combined_line(record: StreamRecord) -> bytes:
    """Format after the combined format of HTTP: protocol, port and server name stand where the request would."""
    line = (
        f"{record.client or '-'} - - [{time.strftime('%d/%b/%Y:%H:%M:%S +0000', time.gmtime())}] "
        f'"{record.protocol.upper()} {record.port} {record.server_name or "-"}" {record.status:d} '
        f'{record.received} {record.sent} {record.seconds:.3f} "{record.route}" "{record.endpoint or "-"}"'
    )
    reason = record.reason.replace("\\", "\\x5c").replace('"', "\\x22")
    return (f'{line} "{reason}"\n' if reason else f"{line}\n").encode()


def json_line(record: StreamRecord) -> bytes:
    """Format as one JSON object; what a connection did not have is left out."""
    entry = {
        "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        **record._asdict(),
        "status": int(record.status),
        "seconds": round(record.seconds, 6),
    }
    present = {name: value for name, value in entry.items() if value != ""}
    return json.dumps(present, separators=(",", ":")).encode() + b"\n"
