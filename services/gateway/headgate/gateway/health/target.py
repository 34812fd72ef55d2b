"""What is checked, as a value: upstreams that ask the same of the same address share one check and its verdict."""

from typing import NamedTuple

from headgate.common.table import ActiveCheck, BackendProtocol


class CheckTarget(NamedTuple):
    """One endpoint and how to ask it."""

    address: str
    port: int
    check: ActiveCheck
    protocol: BackendProtocol = BackendProtocol.HTTP
    """What requests are sent in; `h2c` and `h2` are checked by HTTP/2 too, and of `fcgi` is checked
    whether it accepts connections."""
    ca_pem: str = ""
    """Authorities that the certificate is checked against; empty: the system's."""
    server_name: str = ""
    """SNI where the check names no host."""
