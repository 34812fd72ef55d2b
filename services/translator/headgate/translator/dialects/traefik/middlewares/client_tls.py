"""What a middleware shows to the servers that it asks itself, and whom it believes."""

from typing import NamedTuple

from headgate.common.sealing import ClusterValue
from headgate.translator.dialects.traefik.middlewares.making import Making, Unfollowed
from headgate.translator.dialects.traefik.models.guards import ClientTls
from headgate.translator.sources.certificates import SECRETS, TlsSecret


class ClientIdentity(NamedTuple):
    """Authorities, and a certificate with its key; empty where nothing is said of them."""

    authorities_pem: str = ""
    chain_pem: str = ""
    key: ClusterValue | None = None


def read_client_tls(written: ClientTls, field: str, making: Making) -> ClientIdentity:
    """Return what Secrets say that a field names.

    Raises:
        Unfollowed: one is missing, or has not what it is named for.
    """
    found = ClientIdentity()
    if making.lookups.is_assumed:
        return found
    if written.ca_secret:
        authorities = _secret(written.ca_secret, f"{field}.caSecret", making).authorities_pem
        if not authorities:
            name = f"{making.namespace}/{written.ca_secret}"
            message = f"Secret {name} has no readable certificates under tls.ca or ca.crt"
            raise Unfollowed("InvalidSecret", f"{field}.caSecret", message)
        found = found._replace(authorities_pem=authorities)
    if written.cert_secret:
        secret = _secret(written.cert_secret, f"{field}.certSecret", making)
        if secret.sealed is None or secret.sealed.certificate is None:
            message = f"Secret {making.namespace}/{written.cert_secret} {secret.problem or 'has no certificate'}"
            raise Unfollowed("InvalidSecret", f"{field}.certSecret", message)
        key = secret.sealed.values[secret.key_field].of(making.cluster)
        found = found._replace(chain_pem=secret.sealed.certificate.chain_pem, key=key)
    return found


def _secret(name: str, field: str, making: Making) -> TlsSecret:
    secret = making.lookups.get(SECRETS, making.namespace, name)
    if secret is None:
        raise Unfollowed("SecretNotFound", field, f"Secret {making.namespace}/{name} not found")
    return secret
