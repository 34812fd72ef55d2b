"""Middlewares about how a request and its answer are passed on: errors, buffering, retries, compression."""

from pydantic import Field

from headgate.translator.dialects.traefik.models.fields import Duration
from headgate.translator.dialects.traefik.models.service import LoadBalancer
from headgate.translator.manifests.models import Model


class ErrorPages(Model):
    """Answers of another service in the place of errors."""

    status: tuple[str, ...] = Field(default=(), description="Statuses, such as 404 or 500-599.")
    status_rewrites: dict[str, int] = Field(default_factory=dict, description="Statuses in the place of others.")
    service: LoadBalancer | None = Field(default=None, description="Service with the pages.")
    query: str = Field(default="", description="Path of the page; {status}, {originalStatus} and {url} are filled in.")
    error_request_headers: tuple[str, ...] | None = Field(default=None, description="Headers that the service gets.")


class Buffering(Model):
    """Bodies that are read before they are passed on."""

    max_request_body_bytes: int = Field(default=0, description="Bytes of a request's body; 0 is no bound.")
    mem_request_body_bytes: int = Field(
        default=0, description="Bytes of a request's body that are kept in memory; 1 MiB by default."
    )
    max_response_body_bytes: int = Field(default=0, description="Bytes of an answer's body; 0 is no bound.")
    mem_response_body_bytes: int = Field(
        default=0, description="Bytes of an answer's body that are kept in memory; 1 MiB by default."
    )
    retry_expression: str = Field(default="", description="When a request is sent again.")


class CircuitBreaker(Model):
    """Refuses requests while servers fail."""

    expression: str = Field(default="", description="When it opens, such as NetworkErrorRatio() > 0.5.")
    check_period: Duration | None = Field(default=None, description="Between two looks; 100ms by default.")
    fallback_duration: Duration | None = Field(default=None, description="It stays open; 10s by default.")
    recovery_duration: Duration | None = Field(default=None, description="It takes to close; 10s by default.")
    response_code: int = Field(default=503, ge=100, le=599, description="Status of a refusal; 503 by default.")


class Compress(Model):
    """Compresses answers."""

    excluded_content_types: tuple[str, ...] = Field(default=(), description="Types that are left as they are.")
    included_content_types: tuple[str, ...] = Field(default=(), description="Types that alone are compressed.")
    min_response_body_bytes: int | None = Field(default=None, ge=0, description="Bytes at least; 1024 by default.")
    encodings: tuple[str, ...] = Field(default=(), description="gzip, br, zstd, the preferred first.")
    default_encoding: str = Field(default="", description="For clients that do not say what they take.")


class Retry(Model):
    """Sends requests again."""

    attempts: int = Field(default=0, ge=0, description="Attempts, the first included.")
    initial_interval: Duration | None = Field(default=None, description="Before the second attempt.")
    timeout: Duration | None = Field(default=None, description="For all attempts.")
    max_request_body_bytes: int | None = Field(default=None, ge=-1, description="Bytes of a body that is sent again.")
    status: tuple[str, ...] = Field(default=(), description="Statuses after which a request is sent again.")
    disable_retry_on_network_error: bool = Field(default=False, description="Not after failures of the network.")
    retry_non_idempotent_method: bool = Field(default=False, description="Requests of any method.")


class ContentType(Model):
    """Finds an answer's type by its content."""

    auto_detect: bool | None = Field(default=None, description="Deprecated: the middleware itself says so.")


class GrpcWeb(Model):
    """Translates gRPC-Web for servers of gRPC."""

    allow_origins: tuple[str, ...] = Field(default=(), description="Origins, perhaps *.")


class IssuerInfo(Model):
    """Parts of a name that are passed on."""

    country: bool = Field(default=False, description="The country.")
    province: bool = Field(default=False, description="The province.")
    locality: bool = Field(default=False, description="The locality.")
    organization: bool = Field(default=False, description="The organization.")
    common_name: bool = Field(default=False, description="The common name.")
    serial_number: bool = Field(default=False, description="The serial number in the name.")
    domain_component: bool = Field(default=False, description="The domain components.")


class SubjectInfo(IssuerInfo):
    """Parts of a client's name that are passed on."""

    organizational_unit: bool = Field(default=False, description="The organizational unit.")


class CertificateInfo(Model):
    """Parts of a client's certificate that are passed on."""

    not_after: bool = Field(default=False, description="When it ends.")
    not_before: bool = Field(default=False, description="When it begins.")
    sans: bool = Field(default=False, description="Its alternative names.")
    serial_number: bool = Field(default=False, description="Its serial number.")
    subject: SubjectInfo | None = Field(default=None, description="Parts of its subject.")
    issuer: IssuerInfo | None = Field(default=None, description="Parts of its issuer.")


class PassTlsClientCert(Model):
    """Tells servers of the client's certificate."""

    pem: bool = Field(default=False, description="The whole certificate.")
    info: CertificateInfo | None = Field(default=None, description="Parts of it.")
