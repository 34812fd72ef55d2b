"""Secrets on their way to the log: values sealed to the gateways, and beside them only what is public."""

import base64
import binascii
from collections.abc import Callable, Mapping

from nacl.public import PrivateKey, PublicKey

from headgate.common.resources import JsonObject
from headgate.common.sealing import Purpose, SealedSecret, Sealer

TLS_TYPE = "kubernetes.io/tls"
PUBLISHED_TYPES = frozenset({TLS_TYPE, "Opaque", "kubernetes.io/basic-auth"})
PAIR = ("tls.crt", "tls.key")
OPAQUE_PAIR = ("cert", "key")
"""A certificate and its key as Apache APISIX names them in Secrets of no particular type."""
AUTHORITIES_KEYS = ("ca.crt", "tls.ca")
"""The second is Traefik's, and counts where the first is absent or empty."""
REVOCATIONS_KEYS = ("ca.crl", "crl.pem")
_READABLE_PARTS = frozenset({"data", "stringData"})


def throwaway_recipients() -> tuple[PublicKey, ...]:
    """Return a recipient without a private half: for translation offline."""
    return (PrivateKey.generate().public_key,)


def seal_secret(secret: JsonObject, sealer: Sealer) -> JsonObject:
    """Return a Secret with `sealed` (a `SealedSecret` in JSON) in place of `data` and `stringData`.

    A value that is not base64 is left out and named in the certificate's problem; API servers never hold one.
    """
    # All of x509 comes with it, which the processes that read files do without: they seal nothing.
    from headgate.watcher.objects.certificates import read_authorities, read_certificate_facts, read_revocations

    values, unreadable = decode_data(secret)
    is_tls = secret.get("type") == TLS_TYPE
    chain, key = PAIR if is_tls or values.keys() >= set(PAIR) else OPAQUE_PAIR
    has_pair = is_tls or (chain in values and key in values)
    # Issuers that have no authority to name leave ca.crt empty: as good as absent. An empty list of revocations is
    # none that can be read: taken for absent it would let everybody in again.
    named = next((values[name] for name in AUTHORITIES_KEYS if values.get(name)), None)
    authorities = named or (values.get(chain) if not has_pair else None)
    sealed = SealedSecret(
        values={
            name: sealer.seal(value, Purpose.PRIVATE_KEY if has_pair and name == key else Purpose.VALUE)
            for name, value in sorted(values.items())
        },
        certificate=read_certificate_facts(values.get(chain, b""), values.get(key, b"")) if has_pair else None,
        authorities_pem=_public(read_authorities, authorities or None),
        revocations_pem=_public(
            read_revocations, next((values[key] for key in REVOCATIONS_KEYS if key in values), None)
        ),
    )
    if unreadable and sealed.certificate:
        problem = f"{', '.join(unreadable)} is not base64"
        certificate = sealed.certificate.model_copy(update={"problem": problem})
        sealed = sealed.model_copy(update={"certificate": certificate})
    kept = {name: value for name, value in secret.items() if name not in _READABLE_PARTS}
    return {**kept, "sealed": sealed.model_dump(mode="json")}


def _public(read: Callable[[bytes], str], value: bytes | None) -> str | None:
    return None if value is None else read(value)


def decode_data(secret: JsonObject) -> tuple[dict[str, bytes], list[str]]:
    """Return a Secret's values, and the names of those that are not base64."""
    data = secret.get("data")
    values: dict[str, bytes] = {}
    unreadable: list[str] = []
    for name, text in data.items() if isinstance(data, Mapping) else ():
        try:
            values[name] = decode_value(text)
        except ValueError:
            unreadable.append(name)
    return values, unreadable


def decode_value(text: object) -> bytes:
    """Decode base64 as the API server does: line breaks are ignored, nothing else is.

    Raises:
        ValueError: it is not base64; says nothing of the content.
    """
    if not isinstance(text, str):
        raise ValueError("not text")
    try:
        return base64.b64decode(text.replace("\n", "").replace("\r", ""), validate=True)
    except (binascii.Error, ValueError):
        raise ValueError("not base64") from None
