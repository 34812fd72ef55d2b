"""Middleware: something that is done with requests and answers, of one kind for each object."""

from typing import Any

from pydantic import Field

from headgate.translator.dialects.traefik.models.exchanges import (
    Buffering,
    CircuitBreaker,
    Compress,
    ContentType,
    ErrorPages,
    GrpcWeb,
    PassTlsClientCert,
    Retry,
)
from headgate.translator.dialects.traefik.models.fields import ObjectReference
from headgate.translator.dialects.traefik.models.guards import (
    ForwardAuth,
    InFlightRequests,
    IpAllowList,
    IpWhiteList,
    PasswordAuth,
    RateLimit,
)
from headgate.translator.dialects.traefik.models.headers import Headers
from headgate.translator.dialects.traefik.models.rewriting import (
    AddPrefix,
    EncodedCharacters,
    RedirectRegex,
    RedirectScheme,
    Replacement,
    ReplacePath,
    StripPrefix,
    StripPrefixRegex,
)
from headgate.translator.manifests.models import Model


class Chain(Model):
    """Middlewares that are used together."""

    middlewares: tuple[ObjectReference, ...] = Field(default=(), description="The middlewares, in this order.")


class MiddlewareSpec(Model):
    """What is done with requests and answers: one of these."""

    add_prefix: AddPrefix | None = Field(default=None, description="Puts something before the path.")
    strip_prefix: StripPrefix | None = Field(default=None, description="Takes away the path's beginning.")
    strip_prefix_regex: StripPrefixRegex | None = Field(default=None, description="The same, by patterns.")
    replace_path: ReplacePath | None = Field(default=None, description="Another path.")
    replace_path_regex: Replacement | None = Field(default=None, description="Another path, by a pattern.")
    chain: Chain | None = Field(default=None, description="Middlewares that are used together.")
    ip_allow_list: IpAllowList | None = Field(default=None, description="Admits some networks only.")
    ip_white_list: IpWhiteList | None = Field(default=None, description="Deprecated name of ipAllowList.")
    headers: Headers | None = Field(default=None, description="Headers of requests and answers.")
    encoded_characters: EncodedCharacters | None = Field(
        default=None, description="Encoded characters that paths may have."
    )
    errors: ErrorPages | None = Field(default=None, description="Answers of another service in the place of errors.")
    rate_limit: RateLimit | None = Field(default=None, description="A bound of the rate of requests.")
    in_flight_req: InFlightRequests | None = Field(default=None, description="A bound of the requests at once.")
    redirect_regex: RedirectRegex | None = Field(default=None, description="A redirect of some URLs.")
    redirect_scheme: RedirectScheme | None = Field(default=None, description="A redirect to another scheme.")
    basic_auth: PasswordAuth | None = Field(default=None, description="Users by name and password.")
    digest_auth: PasswordAuth | None = Field(default=None, description="The same, without the password on the wire.")
    forward_auth: ForwardAuth | None = Field(default=None, description="Another server decides who may pass.")
    buffering: Buffering | None = Field(default=None, description="Bodies are read before they are passed on.")
    circuit_breaker: CircuitBreaker | None = Field(default=None, description="Refuses requests while servers fail.")
    compress: Compress | None = Field(default=None, description="Compresses answers.")
    pass_tls_client_cert: PassTlsClientCert | None = Field(
        default=None, alias="passTLSClientCert", description="Tells servers of the client's certificate."
    )
    retry: Retry | None = Field(default=None, description="Sends requests again.")
    content_type: ContentType | None = Field(default=None, description="Finds an answer's type by its content.")
    grpc_web: GrpcWeb | None = Field(default=None, description="Translates gRPC-Web.")
    plugin: dict[str, Any] | None = Field(default=None, description="A plugin by its name, and its configuration.")
