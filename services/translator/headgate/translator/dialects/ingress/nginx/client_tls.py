"""How TLS is spoken with clients by the annotations of ingress-nginx: their certificates, and ciphers."""

import re
from typing import Any, Final

from headgate.common.resources import ObjectRef
from headgate.common.table import ClientAuth, TlsPolicy
from headgate.translator.annotations.nginx import NGINX_TABLE
from headgate.translator.annotations.reading import Reading
from headgate.translator.sources.certificates import SECRETS
from headgate.translator.world.graph import Lookups

CHALLENGES: Final = "/.well-known/acme-challenge"
"""Paths that are neither redirected to HTTPS nor need a certificate: certificates are ordered by them."""
_CHALLENGE: Final = rf"{re.escape(CHALLENGES)}/[\w-]+$"
"""One of them with its token (RFC 8555 section 8.3), and nothing behind that leads elsewhere."""
TLS_FIELD: Final = NGINX_TABLE.field("auth-tls-secret")


def client_tls(ref: ObjectRef, reading: Reading, lookups: Lookups) -> TlsPolicy | None:
    """Return the policy for the hosts of an Ingress; what is wrong goes to the reading."""
    written = reading.group("client_tls")
    fields: dict[str, Any] = {"client_auth": _client_auth(ref, written, reading, lookups)}
    if "ciphers" in written:
        fields |= {"ciphers": written["ciphers"], "prefer_server_ciphers": written.get("prefers", True)}
    said = {name: value for name, value in fields.items() if value is not None}
    return TlsPolicy(**said) if said else None


def _client_auth(ref: ObjectRef, written: dict[str, Any], reading: Reading, lookups: Lookups) -> ClientAuth | None:
    mode = written.get("mode", "required")
    if not written.get("secret") or not mode or lookups.is_assumed:
        return None
    authorities = _authorities(ref, written["secret"], reading, lookups)
    if authorities is None:
        return None
    redirects = reading.group("redirects")
    return ClientAuth(
        mode=mode,
        refusals="answer",
        redirect_http=bool(redirects.get("ssl", True) or redirects.get("force_ssl")),
        skip_paths=(_CHALLENGE,),
        ca_pem=authorities[0],
        crl_pem=authorities[1],
        depth=written.get("depth", 1),
        pass_certificate=written.get("passes", False),
        allowed_names=(written["subject"],) if written.get("subject") else (),
        error_page=written.get("page", ""),
    )


def _authorities(ref: ObjectRef, named: str, reading: Reading, lookups: Lookups) -> tuple[str, str] | None:
    """Return authorities and revocation lists of a Secret; None where it cannot be used, which is noted."""
    namespace, _, name = named.rpartition("/")
    if namespace not in ("", ref.namespace):
        reading.close("auth-tls-secret", f"must be a Secret of namespace {ref.namespace}")
        return None
    secret = lookups.get(SECRETS, ref.namespace, name)
    fault = ""
    if secret is None:
        fault = "not found, or the watcher does not read Secrets of its type (HEADGATE_WATCH_SECRETS=all)"
    elif not secret.authorities_pem:
        fault = "has no readable certificates under ca.crt"
    elif secret.revocations_pem == "":
        fault = "has a revocation list under ca.crl that cannot be read"
    if secret is None or not secret.authorities_pem or fault:
        reading.close("auth-tls-secret", f"Secret {ref.namespace}/{name} {fault}")
        return None
    return secret.authorities_pem, secret.revocations_pem or ""
