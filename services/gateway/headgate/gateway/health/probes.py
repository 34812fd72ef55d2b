"""Asking an endpoint once, over a connection of its own: a check that waits for the request pools would measure those.

A connection per check also tells what a kept one hides: that the endpoint still accepts.
"""

import asyncio
import os
import ssl
from functools import lru_cache
from typing import Final

from headgate.common.table import BackendProtocol
from headgate.common.trust import verifying_context
from headgate.gateway.health.asking import Asking, CheckFailed, HttpAsking
from headgate.gateway.health.h2_asking import GrpcAsking, Http2Asking
from headgate.gateway.health.target import CheckTarget
from headgate.gateway.net.destinations import DestinationDenied
from headgate.gateway.net.dialling import UNBOUNDED, Dialler

_OVER_TLS: Final = (BackendProtocol.HTTPS, BackendProtocol.H2, BackendProtocol.TLS)


async def probe(target: CheckTarget, dialler: Dialler = UNBOUNDED) -> str | None:
    """Ask an endpoint, within the check's timeout; return why it failed, or None."""
    timeout_s = target.check.timeout_s
    try:
        async with asyncio.timeout(timeout_s):
            await _converse(target, dialler)
    except TimeoutError:
        return f"no answer within {timeout_s:g} s"
    except ssl.SSLCertVerificationError as error:
        return f"TLS: {error.verify_message}"
    except ssl.SSLError as error:
        return f"TLS: {error.reason or error}"
    except DestinationDenied as error:
        return error.reason
    except OSError as error:
        # asyncio puts the address into strerror; the reason is in the number, which for look-ups is negative.
        return os.strerror(error.errno) if error.errno and error.errno > 0 else error.strerror or str(error)
    except (CheckFailed, ValueError) as error:
        # ValueError: a host, path or header that no request can be made of, a name that is none, or bad authorities.
        return str(error)
    return None


async def _converse(target: CheckTarget, dialler: Dialler) -> None:
    asking, context = _prepare(target)
    name = (target.check.host or target.server_name or target.address) if context else None
    try:
        await dialler.connect(lambda: asking, target.address, target.port, context, name)
        await asking.answered
    finally:
        asking.hang_up()


def _prepare(target: CheckTarget) -> tuple[Asking, ssl.SSLContext | None]:
    """Choose the conversation: the check's type says what is asked, the upstream's protocol which HTTP."""
    protocol = target.protocol
    match target.check.type:
        case "tcp":
            return Asking(), None
        case "grpc":
            return GrpcAsking(target), _context(target, "h2") if protocol in _OVER_TLS else None
        case "https" if protocol is BackendProtocol.H2:
            return Http2Asking(target), _context(target, "h2")
        case "https":
            return HttpAsking(target), _context(target, "http/1.1")
        case "http" if protocol is BackendProtocol.FCGI:
            return Asking(), None
        case "http" if protocol is BackendProtocol.H2C:
            return Http2Asking(target), None
        case "http":
            return HttpAsking(target), None


def _context(target: CheckTarget, alpn: str) -> ssl.SSLContext:
    return _make_context(target.check.verify, target.ca_pem, alpn)


@lru_cache(maxsize=256)
def _make_context(verify: bool, ca_pem: str, alpn: str) -> ssl.SSLContext:
    context = verifying_context(ca_pem=ca_pem)
    if not verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    context.set_alpn_protocols([alpn])
    return context
