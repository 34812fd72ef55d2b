"""The question to an LDAP server whether a password is right: a simple bind (RFC 4511 section 4.2, RFC 4513 5.1.3).

A connection for each question: what a bind says holds for its connection.
"""

import asyncio
import contextlib
import ssl
from functools import cache
from urllib.parse import urlsplit

from pyasn1.codec.ber import decoder, encoder
from pyasn1.error import PyAsn1Error
from pyasn1_modules import rfc2251

from headgate.common.plugins.authentication.ldap_auth import LdapAuthConfig
from headgate.common.trust import verifying_context
from headgate.gateway.net.dialling import Dialler

_MAX_ANSWER = 4096
"""Bytes; to read one of 64 KiB took half a second, and a bind needs few."""
_RIGHT, _WRONG = "success", "invalidCredentials"


async def bind(dialler: Dialler, config: LdapAuthConfig, user_dn: str, password: str) -> bool:
    """Tell whether a server accepts a name and a password, neither of them empty.

    Raises:
        OSError: the server cannot be asked, or has something else to say; TimeoutError is one.
    """
    async with asyncio.timeout(config.timeout / 1000):
        host, port, context = _server(config)
        reader, writer = await dialler.open_stream(host, port, context)
        try:
            writer.write(_bind_request(user_dn, password))
            result = _result(await _read_message(reader))
        finally:
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()
    if result not in (_RIGHT, _WRONG):
        raise OSError(f"{config.ldap_uri} answers {result}")
    return result == _RIGHT


def _server(config: LdapAuthConfig) -> tuple[str, int, ssl.SSLContext | None]:
    uri = config.ldap_uri
    parts = urlsplit(uri if "://" in uri else f"ldap://{uri}")
    has_tls = config.use_tls or parts.scheme == "ldaps"
    context = _context(verify=config.tls_verify) if has_tls else None
    return parts.hostname or "", parts.port or (636 if has_tls else 389), context


@cache
def _context(*, verify: bool) -> ssl.SSLContext:
    """Make what connections with TLS are made by; once, as the reading of all authorities holds up the loop."""
    context = verifying_context()
    if not verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


def _bind_request(user_dn: str, password: str) -> bytes:
    message = rfc2251.LDAPMessage()
    message["messageID"] = 1
    request = message["protocolOp"]["bindRequest"]
    request["version"] = 3
    request["name"] = user_dn.encode()
    request["authentication"]["simple"] = password.encode()
    encoded: bytes = encoder.encode(message)
    return encoded


async def _read_message(reader: asyncio.StreamReader) -> bytes:
    """Read one message: a tag, a length and so many bytes. Raises OSError."""
    try:
        head = await reader.readexactly(2)
        size = head[1]
        if size & 0x80:
            more = await reader.readexactly(size & 0x7F)
            head, size = head + more, int.from_bytes(more)
        if size > _MAX_ANSWER:
            raise OSError(f"an answer of {size} bytes")
        return head + await reader.readexactly(size)
    except asyncio.IncompleteReadError as error:
        raise OSError("the connection was closed before the answer") from error


def _result(answer: bytes) -> str:
    """Return the result code of a bind by its name. Raises OSError."""
    try:
        message, _ = decoder.decode(answer, asn1Spec=rfc2251.LDAPMessage())
        return message["protocolOp"]["bindResponse"]["resultCode"].prettyPrint()  # type: ignore[no-any-return]
    except (PyAsn1Error, KeyError) as error:
        raise OSError(f"an answer that is none of LDAP: {error}") from error
