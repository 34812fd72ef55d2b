"""ApisixRoute: which requests and connections go where."""

from typing import Annotated, Any, Literal

from pydantic import Field, JsonValue

from headgate.translator.dialects.apisix.models.fields import Timeout
from headgate.translator.dialects.apisix.models.plugin import Plugin
from headgate.translator.manifests.models import KEEPS_UNKNOWN, Model, Name, PortNumber, ServicePort, Text

Scope = Literal["Query", "Header", "Cookie", "Path", "Body", "Variable"]
Operator = Literal[
    "Equal",
    "NotEqual",
    "GreaterThan",
    "GreaterThanEqual",
    "LessThan",
    "LessThanEqual",
    "In",
    "NotIn",
    "RegexMatch",
    "RegexNotMatch",
    "RegexMatchCaseInsensitive",
    "RegexNotMatchCaseInsensitive",
]
Method = Literal["GET", "POST", "PUT", "DELETE", "PATCH", "HEAD", "OPTIONS", "CONNECT", "TRACE", "PURGE"]
LIST_BY_NAME: dict[str, JsonValue] = {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]}
Granularity = Literal["endpoint", "service"]


class Subject(Model):
    """What of a request an expression looks at."""

    scope: Scope = Field(description="Part of the request.")
    name: str = Field(default="", description="Name within that part; none for Path.")


class Expr(Model):
    """One comparison; all of a rule have to hold."""

    subject: Subject = Field(description="What is compared.")
    op: Operator = Field(description="How it is compared.")
    set: tuple[Text, ...] = Field(default=(), description="Texts to compare with, for In and NotIn.")
    value: Text | None = Field(default=None, description="Text to compare with, for all others.")


class Match(Model):
    """Which requests a rule takes."""

    paths: Annotated[tuple[Name, ...], Field(min_length=1)] = Field(
        description="Paths, each as it is or, with * at its end, all that begin with what is before it."
    )
    methods: tuple[Method, ...] = Field(default=(), description="Methods; all by default.")
    hosts: tuple[Name, ...] = Field(default=(), description="Hosts, perhaps such as *.foo.com; all by default.")
    remote_addrs: tuple[Name, ...] = Field(default=(), description="Addresses and networks of clients; all by default.")
    exprs: tuple[Expr, ...] = Field(default=(), description="What else a request has to satisfy.")
    filter_func: str = Field(
        default="", alias="filter_func", description="Refused: Lua is not run; say it with exprs, or with a plugin."
    )


class Backend(Model):
    """A port of a Service in the same namespace."""

    service_name: Name = Field(description="Name of the Service.")
    service_port: ServicePort = Field(description="Port of the Service, by number or name.")
    resolve_granularity: Granularity = Field(
        default="endpoint", description="endpoint, the default: the Service's pods; service: its cluster IP."
    )
    weight: int | None = Field(
        default=None, ge=0, le=1_000_000, description="Share among the rule's backends; 100 by default."
    )
    subset: str = Field(default="", description="Name of a subset of the ApisixUpstream of the Service's name.")


class UpstreamReference(Model):
    """An ApisixUpstream in the same namespace that has nodes of its own."""

    name: Name = Field(description="Name of the ApisixUpstream.")
    weight: int | None = Field(
        default=None, ge=0, le=1_000_000, description="Share among the rule's backends; 100 by default."
    )


class KeyAuth(Model):
    """Where the key is."""

    header: str = Field(default="", description="Name of the header; apikey by default.")


class JwtAuth(Model):
    """Where the token is."""

    header: str = Field(default="", description="Name of the header; authorization by default.")
    query: str = Field(default="", description="Name of the query parameter; jwt by default.")
    cookie: str = Field(default="", description="Name of the cookie; jwt by default.")


class LdapAuth(Model):
    """Which directory is asked."""

    base_dn: str = Field(default="", alias="base_dn", description="Where users are.")
    ldap_uri: str = Field(default="", alias="ldap_uri", description="Address of the server, such as ldap:1389.")
    use_tls: bool = Field(default=False, alias="use_tls", description="Speak TLS with it.")
    uid: str = Field(default="", description="Attribute that names a user; cn by default.")


def _with_older_spellings(schema: dict[str, Any]) -> None:
    """API servers must let in what older versions wrote, or it is never read."""
    schema["enum"] = [*schema["enum"], "wolfRbac"]


class Authentication(Model):
    """Who may use the rule: consumers with a credential of this sort."""

    model_config = KEEPS_UNKNOWN

    enable: bool = Field(default=False, description="Whether clients have to say who they are.")
    type: Literal["keyAuth", "basicAuth", "jwtAuth", "hmacAuth", "wolfRBAC", "ldapAuth"] = Field(
        default="basicAuth", description="Sort of credential.", json_schema_extra=_with_older_spellings
    )
    key_auth: KeyAuth = Field(default=KeyAuth(), description="For keyAuth.")
    jwt_auth: JwtAuth = Field(default=JwtAuth(), description="For jwtAuth.")
    ldap_auth: LdapAuth = Field(default=LdapAuth(), description="For ldapAuth.")


class HttpRule(Model):
    """A rule for HTTP requests."""

    model_config = KEEPS_UNKNOWN

    name: Name = Field(description="Name of the rule, its own within the object.")
    priority: int = Field(default=0, description="Among rules for the same path: the higher goes first; 0 by default.")
    timeout: Timeout | None = Field(default=None, description="Times; 60s each by default.")
    match: Match = Field(description="Which requests it takes.")
    backends: tuple[Backend, ...] = Field(default=(), description="Services that get the requests, by weight.")
    upstreams: tuple[UpstreamReference, ...] = Field(
        default=(), description="ApisixUpstreams that get the requests, by weight, beside the backends."
    )
    websocket: bool | None = Field(default=None, description="Whether WebSocket is let through; it is by default.")
    plugin_config_name: str = Field(
        default="", alias="plugin_config_name", description="ApisixPluginConfig with further plugins."
    )
    plugin_config_namespace: str = Field(
        default="", alias="plugin_config_namespace", description="Namespace of that; the object's own by default."
    )
    plugins: tuple[Plugin, ...] = Field(default=(), description="Plugins of the rule.")
    authentication: Authentication = Field(default=Authentication(), description="Who may use the rule.")


class StreamMatch(Model):
    """Which connections a rule takes."""

    ingress_port: PortNumber = Field(description="Port of the gateways.")
    host: str = Field(default="", description="Server name of TLS connections; all connections by default.")


class StreamBackend(Model):
    """A port of a Service in the same namespace."""

    service_name: Name = Field(description="Name of the Service.")
    service_port: ServicePort = Field(description="Port of the Service, by number or name.")
    resolve_granularity: Granularity = Field(
        default="endpoint", description="endpoint, the default: the Service's pods; service: its cluster IP."
    )
    subset: str = Field(default="", description="Name of a subset of the ApisixUpstream of the Service's name.")


class StreamRule(Model):
    """A rule for TCP connections or UDP sessions."""

    name: Name = Field(description="Name of the rule, its own within the object.")
    protocol: Literal["TCP", "UDP"] = Field(description="What is spoken at the port.")
    match: StreamMatch = Field(description="Which connections it takes.")
    backend: StreamBackend = Field(description="Service that gets the connections.")
    plugins: tuple[Plugin, ...] = Field(default=(), description="Plugins of the rule.")


class RouteSpec(Model):
    """Rules for requests and connections."""

    ingress_class_name: str = Field(default="", description="Class of the object; the default class without one.")
    http: tuple[HttpRule, ...] = Field(
        default=(), description="Rules for HTTP requests.", json_schema_extra=LIST_BY_NAME
    )
    stream: tuple[StreamRule, ...] = Field(
        default=(), description="Rules for TCP connections and UDP sessions.", json_schema_extra=LIST_BY_NAME
    )
