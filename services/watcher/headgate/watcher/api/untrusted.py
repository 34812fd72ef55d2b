"""Why an API server's certificate is not trusted, with the names that tell which authority is missing."""

import asyncio
import ssl
from typing import Any

import aiohttp
from cryptography import x509

LOOK_S = 3.0


async def explain(error: aiohttp.ClientConnectorCertificateError, configuration: Any) -> str:
    """Say what is wrong with the certificate, who issued it, and which authorities are trusted."""
    reason = getattr(error.certificate_error, "verify_message", "") or str(error.certificate_error)
    issuer = await _issuer(error.host, error.port or 443, configuration.tls_server_name or error.host)
    trusted = f"those in {configuration.ssl_ca_cert}" if configuration.ssl_ca_cert else "those of this system"
    return f"its certificate is not trusted: {reason}; it was issued by {issuer}, and trusted authorities are {trusted}"


async def _issuer(host: str, port: int, name: str) -> str:
    """Return the name of a server's issuer. Nothing is sent but the handshake, which proves nothing."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    try:
        async with asyncio.timeout(LOOK_S):
            _, writer = await asyncio.open_connection(host, port, ssl=context, server_hostname=name)
            found = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
            writer.close()
        return repr(x509.load_der_x509_certificate(found).issuer.rfc4514_string())
    except (OSError, TimeoutError, ValueError, TypeError):
        return "an authority that could not be read"
