"""Whose an accepted connection is: who its client is, what it asks for, and which stream route takes it."""

import asyncio
import logging
import socket
from collections.abc import Callable
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
    is_tls: bool
    """It begins with a ClientHello; False too if nothing had to be known of it."""
    server_name: str
    route: CompiledStream | None


_NO_ROUTES = PortPlan(None, None, False)


def _is_taken_by_none(server_name: str) -> bool:
    return False


async def identify(
    accepted: socket.socket,
    context: StreamContext,
    plan: PortPlan | None,
    *,
    expects_proxy_header: bool,
    tells_tls: bool = False,
    is_taken: Callable[[str], bool] = _is_taken_by_none,
) -> Identified | None:
    """Look at what a connection begins with, for as long as a client may take; None: it was closed, as it was no good.

    Args:
        accepted: the connection.
        context: what streams share.
        plan: the routes of its port; None: there are none.
        expects_proxy_header: it begins with one, if its peer is trusted.
        tells_tls: whether it is TLS has to be known in any case.
        is_taken: whether HTTPS has a server name, so that the route without names does not take it.
    """
    plan = plan or _NO_ROUTES
    try:
        async with asyncio.timeout(context.preface_timeout_s):
            named = None
            if expects_proxy_header:
                named = await read_addresses(accepted, context)
            addresses, has_header = named or ends_of(accepted), named is not None
            if plan.names is None and not tells_tls:
                return Identified(addresses, has_header, False, "", plan.find_plain(addresses.source[0]))
            hello = await read_hello(accepted)
            if hello is None:
                return Identified(addresses, has_header, False, "", plan.find_plain(addresses.source[0]))
            name, route = hello.server_name, None
            if plan.names is not None:
                offered = [each.decode("latin-1") for each in hello.alpn]
                has_rest = plan.names.has_rest and not is_taken(name)
                route = plan.names.find(name, offered, addresses.source[0], has_rest=has_rest)
            return Identified(addresses, has_header, True, name, route)
    except (OSError, TimeoutError, ConnectionEnded, BadProxyHeader) as error:
        _log.debug("a connection is closed unserved", extra={"error": str(error) or "nothing came in time"})
        context.stats.unrouted += 1
        accepted.close()
        return None
    except BaseException:
        accepted.close()
        raise
