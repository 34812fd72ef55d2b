"""Proofs that a certificate's names are ours (ACME, RFC 8555): what gateways answer authorities that ask."""

from typing import Final

from headgate.common.table.base import Entry

CHALLENGE_PATH: Final = "/.well-known/acme-challenge/"
"""Before the token (RFC 8555, section 8.3)."""
ALPN_CHALLENGE: Final = "acme-tls/1"
"""Protocol that an authority offers when it asks by TLS-ALPN-01 (RFC 8737)."""


class Challenge(Entry):
    """An answer over HTTP (HTTP-01): before all routes and redirects, on every port that speaks HTTP."""

    key: str
    """`<host>/<token>`."""
    host: str
    """Lower case."""
    token: str
    answer: str
    """The key authorization: public, as it is of use to the owner of the account alone."""


def challenge_name(host: str) -> str:
    """Return the server name in a table of the certificate that answers TLS-ALPN-01 for a host: none of a client."""
    return f"{ALPN_CHALLENGE} {host}"
