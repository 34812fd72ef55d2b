"""Middlewares that refuse requests: by address, credentials, rate, and what another server says."""

from pydantic import Field

from headgate.translator.dialects.traefik.models.fields import Duration
from headgate.translator.manifests.models import Model


class SourceRange(Model):
    """Networks that are admitted."""

    source_range: tuple[str, ...] = Field(default=(), description="Addresses and networks (CIDR).")


class IpStrategy(Model):
    """Which address is the client's."""

    depth: int = Field(default=0, ge=0, description="Place in X-Forwarded-For, counted from the right.")
    excluded_ips: tuple[str, ...] = Field(
        default=(), alias="excludedIPs", description="Addresses and networks of X-Forwarded-For that are passed over."
    )
    ipv6_subnet: int | None = Field(
        default=None, alias="ipv6Subnet", description="Bits of an IPv6 address that are one client."
    )


class IpWhiteList(SourceRange):
    """Networks that are admitted, under the older name."""

    ip_strategy: IpStrategy | None = Field(default=None, description="Which address is the client's.")


class IpAllowList(IpWhiteList):
    """Networks that are admitted."""

    reject_status_code: int = Field(default=403, description="Status of a refusal; 403 by default.")


class SourceCriterion(Model):
    """What requests are counted by: one of these."""

    ip_strategy: IpStrategy | None = Field(default=None, description="By the client's address.")
    request_header_name: str = Field(default="", description="By a header.")
    request_host: bool = Field(default=False, description="By the host.")


class ClientTls(Model):
    """TLS towards another server."""

    ca_secret: str = Field(default="", description="Secret with authorities, under tls.ca or ca.crt.")
    cert_secret: str = Field(default="", description="Secret with our own certificate.")
    insecure_skip_verify: bool = Field(default=False, description="Do not check certificates.")


class ForwardAuthTls(ClientTls):
    """TLS towards the server that is asked."""

    ca_optional: bool | None = Field(default=None, description="Deprecated, without effect.")


class Redis(Model):
    """Where counts are shared."""

    endpoints: tuple[str, ...] = Field(default=(), description="Addresses, host:port.")
    tls: ClientTls | None = Field(default=None, description="TLS towards Redis.")
    secret: str = Field(default="", description="Secret with username and password.")
    db: int = Field(default=0, description="Number of the database.")
    pool_size: int = Field(default=0, description="Connections; 10 for each core by default.")
    min_idle_conns: int = Field(default=0, description="Idle connections at least.")
    max_active_conns: int = Field(default=0, description="Connections at most; 0 is no bound.")
    read_timeout: Duration | None = Field(default=None, description="For an answer; 3s by default.")
    write_timeout: Duration | None = Field(default=None, description="For a command; 3s by default.")
    dial_timeout: Duration | None = Field(default=None, description="For a connection; 5s by default.")


class RateLimit(Model):
    """A bound of the rate of requests."""

    average: int = Field(default=0, ge=0, description="Requests in a period; 0 is no bound.")
    period: Duration | None = Field(default=None, description="The period; 1s by default.")
    burst: int | None = Field(default=None, ge=0, description="Requests at once; 1 by default.")
    source_criterion: SourceCriterion | None = Field(default=None, description="What requests are counted by.")
    redis: Redis | None = Field(default=None, description="Where counts are shared.")


class InFlightRequests(Model):
    """A bound of the requests at once."""

    amount: int = Field(default=0, ge=0, description="Requests at once.")
    source_criterion: SourceCriterion | None = Field(default=None, description="What requests are counted by.")


class PasswordAuth(Model):
    """Users by name and password."""

    secret: str = Field(default="", description="Secret with the users.")
    realm: str = Field(default="", description="Realm that clients are shown; traefik by default.")
    remove_header: bool = Field(default=False, description="Keep Authorization from the servers.")
    header_field: str = Field(default="", description="Header in which the servers get the user's name.")


class ForwardAuth(Model):
    """Another server that is asked whether a request may pass."""

    address: str = Field(default="", description="URL that is asked.")
    trust_forward_header: bool = Field(default=False, description="Deprecated: believe X-Forwarded-* of clients.")
    auth_response_headers: tuple[str, ...] = Field(default=(), description="Headers of its answer for the servers.")
    auth_response_headers_regex: str = Field(default="", description="The same, by a pattern.")
    auth_request_headers: tuple[str, ...] = Field(default=(), description="Headers of requests that it gets.")
    tls: ForwardAuthTls | None = Field(default=None, description="TLS towards it.")
    add_auth_cookies_to_response: tuple[str, ...] = Field(default=(), description="Its cookies that clients get.")
    header_field: str = Field(default="", description="Header in which it names the user, for the access log.")
    forward_body: bool = Field(default=False, description="Send it requests' bodies.")
    max_body_size: int | None = Field(default=None, description="Bytes of such a body; -1: any.")
    max_response_body_size: int | None = Field(default=None, description="Bytes of its answer's body; -1: any.")
    preserve_location_header: bool = Field(default=False, description="Leave Location of its answers as it is.")
    preserve_request_method: bool = Field(default=False, description="Ask by the request's own method.")
    auth_signin_url: str = Field(default="", alias="authSigninURL", description="Where clients are sent after a 401.")
