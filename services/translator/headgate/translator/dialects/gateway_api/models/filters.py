"""Filters of HTTPRoutes."""

from typing import Literal

from pydantic import Field

from headgate.translator.dialects.gateway_api.models.backend import BackendReference
from headgate.translator.manifests.models import Model, Name, PortNumber


class HeaderValue(Model):
    """A header."""

    name: Name
    value: str


class HeaderModifier(Model):
    """Changes of headers."""

    set: tuple[HeaderValue, ...] = ()
    add: tuple[HeaderValue, ...] = ()
    remove: tuple[Name, ...] = ()


class PathModifier(Model):
    """A change of the path."""

    type: Literal["ReplaceFullPath", "ReplacePrefixMatch"]
    replace_full_path: str | None = None
    replace_prefix_match: str | None = None


class RequestRedirect(Model):
    """An answer with a `Location`."""

    scheme: Literal["http", "https"] | None = None
    hostname: str = ""
    path: PathModifier | None = None
    port: PortNumber | None = None
    status_code: Literal[301, 302, 303, 307, 308] = 302


class UrlRewrite(Model):
    """Changes of host and path."""

    hostname: str = ""
    path: PathModifier | None = None


class Fraction(Model):
    """A share of the requests."""

    numerator: int = Field(ge=0)
    denominator: int = Field(default=100, ge=1)


class RequestMirror(Model):
    """Copies of requests."""

    backend_ref: BackendReference
    percent: int | None = Field(default=None, ge=0, le=100)
    fraction: Fraction | None = None


class Cors(Model):
    """Requests of other origins."""

    allow_origins: tuple[str, ...] = ()
    allow_credentials: bool = False
    allow_methods: tuple[str, ...] = ()
    allow_headers: tuple[str, ...] = ()
    expose_headers: tuple[str, ...] = ()
    max_age: int = Field(default=5, ge=1)


class ExtensionReference(Model):
    """An object in the namespace of the route that says what is done."""

    group: str
    kind: Name
    name: Name


class HttpAuth(Model):
    """How a Service is asked by HTTP."""

    path: str = Field(default="", max_length=1024)
    """Before the path of the request."""
    allowed_headers: tuple[Name, ...] = Field(default=(), max_length=64)
    """That it is shown, besides `Authorization`."""
    allowed_response_headers: tuple[Name, ...] = Field(default=(), max_length=64)
    """Of its answer that the backend gets; all without any."""


class GrpcAuth(Model):
    """How a Service is asked by gRPC."""

    allowed_headers: tuple[Name, ...] = Field(default=(), max_length=64)
    """That it is shown; all without any."""


class ForwardBody(Model):
    """Whether it is shown the body."""

    max_size: int = Field(default=0, ge=0)
    """Bytes; 0: it is not."""


class ExternalAuth(Model):
    """A Service that decides who is let in (GEP-1494)."""

    protocol: Literal["HTTP", "GRPC"]
    backend_ref: BackendReference
    http: HttpAuth = HttpAuth()
    grpc: GrpcAuth = GrpcAuth()
    forward_body: ForwardBody = ForwardBody()


class RouteFilter(Model):
    """A filter: its type, and the field of that type."""

    type: Name
    request_header_modifier: HeaderModifier | None = None
    response_header_modifier: HeaderModifier | None = None
    request_redirect: RequestRedirect | None = None
    url_rewrite: UrlRewrite | None = Field(default=None, alias="urlRewrite")
    request_mirror: RequestMirror | None = None
    cors: Cors | None = None
    extension_ref: ExtensionReference | None = None
    external_auth: ExternalAuth | None = None
