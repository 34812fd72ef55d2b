"""Whose an accepted connection is: who its client is, what it asks for, and which stream route takes it."""

import asyncio
import logging
import socket
from typing import NamedTuple

from headgate.gateway.net.proxy_protocol import Addresses, BadProxyHeader
from headgate.gateway.net.sockets import ends_of
from headgate.gateway.streams.acceptor import ConnectionEnded, read_addresses, read_hello
from headgate.gateway.streams.context import StreamContext
from headgate.gateway.streams.ports import PortPlan
from headgate.gateway.streams.route import CompiledStream

_log = logging.getLogger(__name__)


class Identified(NamedTuple):
    """What was found out about a connection without serving it."""

    addresses: Addresses
    """Those that its PROXY header names, if it has to begin with one."""
    has_header: bool
    """Such a header has named the addresses."""
    server_name: str
    route: CompiledStream | None


async def identify(
    accepted: socket.socket, context: StreamContext, plan: PortPlan | None, *, expects_proxy_header: bool
) -> Identified | None:
    """Look at what a connection begins with, for as long as a client may take; None: it was closed, as it was no good.

    `plan` has the routes of its port; None: there are none.
    """
    try:
        async with asyncio.timeout(context.preface_timeout_s):
            named = None
            if expects_proxy_header:
                named = await read_addresses(accepted, context)
            addresses, has_header = named or ends_of(accepted), named is not None
            if plan is None or plan.names is None:
                return Identified(addresses, has_header, "", plan.only if plan is not None else None)
            hello = await read_hello(accepted)
            if hello is None:
                return Identified(addresses, has_header, "", None)
            return Identified(addresses, has_header, hello.server_name, plan.names.find(hello.server_name))
    except (OSError, TimeoutError, ConnectionEnded, BadProxyHeader) as error:
        _log.debug("a connection is closed unserved", extra={"error": str(error) or "nothing came in time"})
        context.stats.unrouted += 1
        accepted.close()
        return None
    except BaseException:
        accepted.close()
        raise
