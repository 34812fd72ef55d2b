"""Accounts and certificates of ACME (RFC 8555) as objects of the delta log.

The leading translator orders certificates and writes what becomes of that here; no API server knows these objects. All
translators read them as they read every other object, so a certificate takes effect as a Secret's does, and a new
leader goes on where the last one was. Private keys are sealed: a certificate's to the gateways, an account's to the
translators.

The objects are of a cluster of their own, whose name no real one can have. Their namespace is the table, as each table
has a leader of its own, and may have gateways with other keys.
"""

from datetime import datetime
from typing import Final, Self

from pydantic import AwareDatetime, BaseModel, ConfigDict, ValidationError

from headgate.common.deltas import Delta, Operation
from headgate.common.resources import ACME_ACCOUNT, ACME_CERTIFICATE, JsonObject, ObjectRef, ResourceKind
from headgate.common.sealing import SealedValue

ACME_CLUSTER: Final = "headgate.acme"
_VALUES: Final = ConfigDict(frozen=True, extra="ignore")


class _State(BaseModel):
    """What an object of the log says."""

    model_config = _VALUES

    @classmethod
    def read(cls, manifest: JsonObject) -> Self | None:
        """Read an object of the log; None if it cannot be read, as from a later release."""
        try:
            return cls.model_validate(manifest.get("spec"))
        except ValidationError:
            return None


class IssuedCertificate(BaseModel):
    """A certificate with its sealed key."""

    model_config = _VALUES

    chain_pem: str
    private_key: SealedValue
    fingerprint: str
    """SHA-256 of the leaf in DER, hex."""
    not_before: AwareDatetime
    not_after: AwareDatetime


class OpenChallenge(BaseModel):
    """What gateways answer while an order is under way: over HTTP, or by a certificate."""

    model_config = _VALUES

    host: str
    token: str = ""
    answer: str = ""
    """HTTP-01: the key authorization."""
    certificate: IssuedCertificate | None = None
    """TLS-ALPN-01."""


class Failure(BaseModel):
    """Why there is no newer certificate."""

    model_config = _VALUES

    count: int
    """Attempts that failed, one after the other."""
    reason: str
    at: AwareDatetime
    retry_at: AwareDatetime


class CertificateState(_State):
    """What became of the certificate for a set of names."""

    resolver: str
    names: tuple[str, ...]
    certificate: IssuedCertificate | None = None
    ordered_at: AwareDatetime | None = None
    """When the order began that is under way, or was when its translator ended."""
    challenges: tuple[OpenChallenge, ...] = ()
    failure: Failure | None = None


class AccountState(_State):
    """An account with an authority."""

    directory: str
    uri: str
    private_key: SealedValue
    """PEM; sealed to the translators."""


def certificate_ref(table: str, name: str) -> ObjectRef:
    """Return the object with a table's certificate."""
    return _ref(ACME_CERTIFICATE, table, name)


def account_ref(table: str, resolver: str) -> ObjectRef:
    """Return the object with a table's account."""
    return _ref(ACME_ACCOUNT, table, resolver)


def _ref(kind: ResourceKind, table: str, name: str) -> ObjectRef:
    return ObjectRef(ACME_CLUSTER, kind.group, kind.resource, table, name)


def removal_delta(ref: ObjectRef, now: datetime) -> Delta:
    """Return what removes an object from the log."""
    return Delta(
        ref=ref,
        operation=Operation.DELETE,
        uid=f"{ref.resource}-{ref.namespace}-{ref.name}",
        resource_version=now.isoformat(),
        observed_at=now,
        object=None,
    )


def state_delta(ref: ObjectRef, state: CertificateState | AccountState, now: datetime) -> Delta:
    """Return what goes into the log."""
    kind = ACME_CERTIFICATE if isinstance(state, CertificateState) else ACME_ACCOUNT
    return Delta(
        ref=ref,
        operation=Operation.APPLY,
        uid=f"{ref.resource}-{ref.namespace}-{ref.name}",
        resource_version=now.isoformat(),
        observed_at=now,
        object={
            "apiVersion": f"{kind.group}/{kind.versions[0]}",
            "kind": kind.kind,
            "metadata": {"namespace": ref.namespace, "name": ref.name},
            "spec": state.model_dump(mode="json", exclude_defaults=True),
        },
    )
