"""BackendTLSPolicies."""

from typing import Annotated, Any, Literal

from pydantic import Field

from headgate.translator.dialects.gateway_api.models.route import SessionPersistence
from headgate.translator.manifests.models import Model, Name, Seconds

_DnsName = Annotated[
    str, Field(pattern=r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$", max_length=253)
]

_Interval = Annotated[Seconds, Field(gt=0, le=3600)]


class PolicyTargetReference(Model):
    """A Service, or one of its ports."""

    group: str = ""
    kind: Name
    name: Name
    section_name: str = ""


class LocalReference(Model):
    """An object in the namespace of the policy."""

    group: str = ""
    kind: Name
    name: Name


class SubjectAltName(Model):
    """A name that the certificate of a Service may have."""

    type: Literal["Hostname", "URI"]
    hostname: Annotated[str, Field(max_length=253)] = ""
    uri: Annotated[str, Field(max_length=253)] = ""

    @property
    def value(self) -> str:
        """The name; empty if the field of its type is."""
        return self.hostname if self.type == "Hostname" else self.uri


class BackendTlsValidation(Model):
    """How the certificate of a Service is checked."""

    ca_certificate_refs: tuple[LocalReference, ...] = Field(default=(), alias="caCertificateRefs", max_length=8)
    well_known_ca_certificates: str | None = Field(default=None, alias="wellKnownCACertificates")
    hostname: _DnsName
    subject_alt_names: tuple[SubjectAltName, ...] = Field(default=(), max_length=5)


class BackendTlsPolicySpec(Model):
    """A BackendTLSPolicy."""

    target_refs: tuple[PolicyTargetReference, ...] = Field(min_length=1, max_length=16)
    validation: BackendTlsValidation
    options: dict[str, Any] = Field(default_factory=dict)


class BudgetDetails(Model):
    """How many of the requests may be retries."""

    percent: int = Field(default=20, ge=0, le=100)
    interval: _Interval = 10.0


class RequestRate(Model):
    """So many requests in a time."""

    count: int = Field(default=10, ge=1, le=1_000_000)
    interval: _Interval = 1.0


class RetryConstraint(Model):
    """When no request is sent again (GEP-3388)."""

    budget: BudgetDetails = BudgetDetails()
    min_retry_rate: RequestRate = RequestRate()


class TrafficPolicySpec(Model):
    """An XBackendTrafficPolicy."""

    target_refs: tuple[PolicyTargetReference, ...] = Field(min_length=1, max_length=16)
    retry_constraint: RetryConstraint | None = None
    session_persistence: SessionPersistence | None = None
