"""How TLS is spoken with clients by the annotations of ingress-nginx: their certificates, and ciphers."""

import re
from typing import Any, Final

from headgate.common.resources import ObjectRef
from headgate.common.table import ClientAuth, TlsPolicy
from headgate.translator.annotations.nginx import NGINX_TABLE
from headgate.translator.annotations.reading import Reading
from headgate.translator.objects.plugin_uses import MISSING_SECRET
from headgate.translator.sources.certificates import SECRETS
from headgate.translator.world.graph import Lookups

CHALLENGES: Final = "/.well-known/acme-challenge"
"""Paths that are neither redirected to HTTPS nor need a certificate: certificates are ordered by them."""
_CHALLENGE: Final = rf"{re.escape(CHALLENGES)}/[\w-]+$"
"""One of them with its token (RFC 8555 section 8.3), and nothing behind that leads elsewhere."""
TLS_FIELD: Final = NGINX_TABLE.field("auth-tls-secret")


def client_tls(ref: ObjectRef, reading: Reading, lookups: Lookups) -> TlsPolicy | None:
    """Return the policy for the hosts of an Ingress; what is wrong goes to the reading."""
    tls = reading.group("tls")
    fields = {name: tls[name] for name in ("min_version", "max_version", "ciphers") if tls.get(name)}
    if "ciphers" in fields:
        fields["prefer_server_ciphers"] = tls.get("prefers", True)
    if not tls.get("http2", True):
        fields["alpn"] = ("http/1.1",)
    client_auth = _client_auth(ref, reading.group("client_tls"), reading, lookups)
    if client_auth is not None:
        fields["client_auth"] = client_auth
    return TlsPolicy(**fields) if fields else None


def over(ours: TlsPolicy | None, theirs: TlsPolicy | None) -> TlsPolicy | None:
    """Return both policies in one: what the first says goes before what the second says."""
    if ours is None or theirs is None:
        return ours or theirs
    default = TlsPolicy()
    said = {name: value for name, value in ours if value != getattr(default, name)}
    if ours.min_version > theirs.max_version:
        said.setdefault("max_version", "")
    return theirs.model_copy(update=said)


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
    namespace = namespace or ref.namespace
    if namespace != ref.namespace and not reading.group("security").get("crosses_namespaces", False):
        reading.close("auth-tls-secret", f"must be a Secret of namespace {ref.namespace}")
        return None
    secret = lookups.get(SECRETS, namespace, name)
    fault = ""
    if secret is None:
        fault = MISSING_SECRET
    elif not secret.authorities_pem:
        fault = "has no readable certificates under ca.crt"
    elif secret.revocations_pem == "":
        fault = "has a revocation list under ca.crl that cannot be read"
    if secret is None or not secret.authorities_pem or fault:
        reading.close("auth-tls-secret", f"Secret {namespace}/{name} {fault}")
        return None
    return secret.authorities_pem, secret.revocations_pem or ""
