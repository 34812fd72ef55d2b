"""Who is at the ends of a client's connection."""

import asyncio

from headgate.gateway.net.proxy_protocol import Addresses


def ends_of_connection(transport: asyncio.BaseTransport, client: str) -> tuple[str, Addresses | None]:
    """Give the client's address, which a PROXY protocol header may have told, and both ends of the connection."""
    source, destination = transport.get_extra_info("peername"), transport.get_extra_info("sockname")
    if not isinstance(source, tuple):
        return client or "unix", None
    address = client or source[0].removeprefix("::ffff:")
    if not isinstance(destination, tuple):
        return address, None
    return address, Addresses((address, source[1]), (destination[0].removeprefix("::ffff:"), destination[1]))
