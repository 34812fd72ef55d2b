"""TLS towards endpoints by `proxy-ssl-*`. As with ingress-nginx it takes the Secret: without it nothing else counts."""

from typing import Any, Final

from headgate.common.resources import ObjectRef
from headgate.common.table import BackendTls
from headgate.translator.annotations.reading import Reading
from headgate.translator.sources.certificates import SECRETS
from headgate.translator.world.graph import Lookups

_SECRET: Final = "proxy-ssl-secret"


def upstream_tls(ref: ObjectRef, reading: Reading, lookups: Lookups) -> BackendTls | None:
    """Return how TLS is spoken with the endpoints of an Ingress; a Secret that is missing refuses all requests."""
    written = reading.group("upstream_tls")
    place = written.pop("secret", "")
    if not place or lookups.is_assumed:
        return None
    namespace, _, name = place.rpartition("/")
    if (namespace or ref.namespace) != ref.namespace:
        reading.close(_SECRET, f"must be a Secret of namespace {ref.namespace}")
        return None
    secret = lookups.get(SECRETS, ref.namespace, name)
    if secret is None:
        reading.close(_SECRET, f"Secret {ref.namespace}/{name} not found")
        return None
    if secret.sealed is None and not secret.authorities_pem:
        reading.close(_SECRET, f"Secret {ref.namespace}/{name} has neither a certificate with its key nor ca.crt")
        return None
    fields: dict[str, Any] = {name: value for name, value in written.items() if name != "sends_name"}
    if secret.sealed is not None and secret.sealed.certificate is not None:
        fields["certificate_pem"] = secret.sealed.certificate.chain_pem
        fields["private_key"] = secret.sealed.values[secret.key_field].of(ref.cluster)
    return BackendTls(ca_pem=secret.authorities_pem or "", **fields)
