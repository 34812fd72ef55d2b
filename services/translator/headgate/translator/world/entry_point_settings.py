"""What operators write of entry points: `name=PORT/tcp`, or a table with fields of Traefik's static configuration.

Fields of Traefik that have no effect here are taken, so that its configuration can be copied as it is; `headgate audit`
and the documentation name them.
"""

from collections.abc import Mapping
from typing import Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator
from pydantic.alias_generators import to_camel

from headgate.common.table import HttpsRedirect
from headgate.common.table.listener import ClientConnections
from headgate.translator.manifests.models import Seconds
from headgate.translator.world.entry_points import (
    FORMS,
    OWN_ENTRY_POINTS,
    EntryPoint,
    ListenerOptions,
    Observed,
    check_entry_points,
    read_address,
)

_OWN: Final = {one.name: one.protocol for one in OWN_ENTRY_POINTS}
_EVERYBODY: Final = ("0.0.0.0/0", "::/0")
_UNDERSCORES: Final = {"keep": "allow", "delete": "drop", "reject": "refuse"}
_HTTPS: Final = 443
ESCAPES: Final = {
    "allow_encoded_slash": "2F",
    "allow_encoded_back_slash": "5C",
    "allow_encoded_null_character": "00",
    "allow_encoded_semicolon": "3B",
    "allow_encoded_percent": "25",
    "allow_encoded_question_mark": "3F",
    "allow_encoded_hash": "23",
}
"""What each field of `encodedCharacters` is about."""


def _alias(name: str) -> str:
    return "trustedIPs" if name == "trusted_ips" else to_camel(name)


class Written(BaseModel):
    """Base of what is written: names as in Traefik's static configuration, and no others."""

    model_config = ConfigDict(frozen=True, extra="forbid", alias_generator=_alias, populate_by_name=True)


class Redirection(Written):
    """Where plain requests are sent."""

    to: str = Field(description="Entry point with TLS, or a port such as :8443.")
    scheme: Literal["https"] = Field(default="https", description="The scheme that clients are sent to.")
    permanent: bool = Field(default=True, description="With 301 and 308, else 302 and 307.")
    priority: int = Field(default=0, description="Without effect: redirections go before all routes.")


class Redirections(Written):
    """Redirections of an entry point."""

    entry_point: Redirection | None = None


class DefaultTls(Written):
    """TLS of routes that say nothing of it."""

    options: str = Field(default="", description="TLSOption, as NAMESPACE-NAME@kubernetescrd.")
    cert_resolver: str = Field(default="", description="Without effect.")
    domains: list[Any] = Field(default=[], description="Without effect.")


class EncodedCharacters(Written):
    """Escapes that paths may have."""

    allow_encoded_slash: bool = Field(default=True, description="%2F")
    allow_encoded_back_slash: bool = Field(default=True, description="%5C")
    allow_encoded_null_character: bool = Field(default=True, description="%00, which gateways may refuse themselves")
    allow_encoded_semicolon: bool = Field(default=True, description="%3B")
    allow_encoded_percent: bool = Field(default=True, description="%25")
    allow_encoded_question_mark: bool = Field(default=True, description="%3F")
    allow_encoded_hash: bool = Field(default=True, description="%23")

    @property
    def refused(self) -> tuple[str, ...]:
        """The escapes that paths may not have, two hexadecimal digits each."""
        return tuple(code for field, code in ESCAPES.items() if not getattr(self, field))


class HttpOptions(Written):
    """What holds for requests."""

    redirections: Redirections = Redirections()
    middlewares: tuple[str, ...] = Field(default=(), description="As NAMESPACE-NAME@kubernetescrd, of all routes.")
    tls: DefaultTls | None = Field(default=None, description="Routes without tls have it here too.")
    max_header_bytes: int | None = Field(default=None, ge=1024, le=1024 * 1024, description="Of a request's head.")
    underscore_headers_strategy: Literal["keep", "delete", "reject"] | None = None
    encoded_characters: EncodedCharacters = EncodedCharacters()
    encode_query_semicolons: bool = Field(default=False, description="Servers get ; in queries as %3B, not as &.")
    sanitize_path: bool = Field(default=True, description="Without effect.")


class Http2Options(Written):
    """What holds for HTTP/2."""

    max_concurrent_streams: int | None = Field(default=None, ge=1, description="Requests at once on a connection.")
    max_decoder_header_table_size: int | None = Field(default=None, description="Without effect.")
    max_encoder_header_table_size: int | None = Field(default=None, description="Without effect.")


class Trust(Written):
    """Peers that are believed."""

    insecure: bool = Field(default=False, description="All are.")
    trusted_ips: tuple[str, ...] = Field(default=(), description="Addresses and networks.")

    @property
    def networks(self) -> tuple[str, ...]:
        """Those that are believed."""
        return _EVERYBODY if self.insecure else self.trusted_ips


class ForwardedHeaders(Trust):
    """Peers whose `X-Forwarded-*` are believed."""

    connection: list[str] = Field(default=[], description="Without effect.")
    not_append_x_forwarded_for: bool = Field(default=False, description="The peer is not added to X-Forwarded-For.")
    add_x_forwarded_scheme_headers: bool = Field(
        default=False, description="Servers get X-Scheme and X-Forwarded-Scheme too."
    )


class RespondingTimeouts(Written):
    """How long clients may take."""

    read_timeout: Seconds | None = Field(default=None, description="For the head, and between parts of the body.")
    write_timeout: Seconds | None = Field(default=None, description="Without effect.")
    idle_timeout: Seconds | None = Field(default=None, description="Between two requests.")


class Transport(Written):
    """What holds for connections."""

    responding_timeouts: RespondingTimeouts = RespondingTimeouts()
    keep_alive_max_requests: int = Field(default=0, ge=0, description="Requests of a connection; 0: any number.")
    keep_alive_max_time: Seconds | None = Field(default=None, description="Age of a connection; 0: any.")
    life_cycle: dict[str, Any] = Field(default={}, description="Without effect: gateways have settings of their own.")


class UdpOptions(Written):
    """What holds for datagrams."""

    timeout: Seconds | None = Field(default=None, description="After which a session ends.")


class Observability(Written):
    """What is seen of requests whose routes do not say it."""

    access_logs: bool = Field(default=True, description="Lines of the access log.")
    tracing: bool = Field(default=True, description="Traces.")
    metrics: bool = Field(default=True, description="Without effect: requests of all routes are counted.")
    trace_verbosity: str = Field(default="", description="Without effect: spans have one form.")


class EntryPointSettings(Written):
    """One entry point."""

    address: str = Field(default="", description="Where it listens; of web and websecure the gateways' own ports.")
    as_default: bool = Field(default=False, description="Objects that name no entry point mean this one.")
    http: HttpOptions = HttpOptions()
    http2: Http2Options = Http2Options()
    forwarded_headers: ForwardedHeaders = ForwardedHeaders()
    proxy_protocol: Trust | None = None
    transport: Transport = Transport()
    udp: UdpOptions = UdpOptions()
    http3: dict[str, Any] | None = Field(default=None, description="Without effect.")
    reuse_port: bool = Field(default=False, description="Without effect: gateways share ports in any case.")
    allow_acme_by_pass: bool = Field(default=False, alias="allowACMEByPass", description="Without effect.")
    observability: Observability = Observability()

    @model_validator(mode="before")
    @classmethod
    def _read_text(cls, value: Any) -> Any:
        return {"address": value} if isinstance(value, str) else value

    @field_validator("proxy_protocol")
    @classmethod
    def _check_trust(cls, value: Trust | None) -> Trust | None:
        return value if value is not None and value.networks else None


def split_names(value: Any) -> Any:
    """Return entry points by name, of which a list has texts such as `db=5432/tcp`.

    Raises:
        ValueError: a text is none of these.
    """
    if not isinstance(value, list):
        return value
    found: dict[str, str] = {}
    for text in value:
        name, equals, address = str(text).partition("=")
        if not equals or name.strip() in found:
            raise ValueError(f"{str(text)[:40]!r} must be NAME=PORT/tcp or NAME=PORT/udp, each name once")
        found[name.strip()] = address.strip()
    return found


def read_entry_points(written: Mapping[str, EntryPointSettings]) -> tuple[EntryPoint, ...]:
    """Return the entry points of the gateways.

    Those of TCP that are marked are the default ones, else all are; of UDP all are in any case, as with Traefik.

    Raises:
        ValueError: one of them cannot be had.
    """
    points = check_entry_points(read_address(name, _address(name, each)) for name, each in written.items())
    ports = {one.name: one for one in points}
    points = tuple(_with_options(one, written[one.name], ports) if one.name in written else one for one in points)
    marked = {name for name, each in written.items() if each.as_default}
    if not marked:
        return points
    return tuple(one._replace(is_default=one.protocol == "udp" or one.name in marked) for one in points)


def _address(name: str, written: EntryPointSettings) -> str:
    if name not in _OWN:
        if not written.address:
            raise ValueError(f"{name}: address {FORMS}")
        return written.address
    if written.address not in ("", _OWN[name]):
        raise ValueError(f"{name} is the gateways' own {_OWN[name].upper()} port: leave its address out")
    return _OWN[name]


def _with_options(point: EntryPoint, written: EntryPointSettings, ports: Mapping[str, EntryPoint]) -> EntryPoint:
    http, tls = written.http, written.http.tls
    if tls is not None and point.protocol == "http":
        raise ValueError(f"{point.name}.http.tls: the gateways' HTTP port speaks no TLS")
    redirect = http.redirections.entry_point
    return point._replace(
        options=ListenerOptions(
            *_trust(point.name, written),
            connections=_connections(point.name, written),
            redirect=_redirect(point, redirect, ports) if redirect is not None else None,
        ),
        middlewares=http.middlewares,
        speaks_tls=tls is not None,
        tls_options=tls.options if tls is not None else "",
        refused_escapes=http.encoded_characters.refused,
        observed=Observed(written.observability.access_logs, written.observability.tracing),
        udp_timeout_s=written.udp.timeout,
    )


def _trust(name: str, written: EntryPointSettings) -> tuple[tuple[str, ...] | None, bool | None]:
    """Return whom a port believes, and whether they send PROXY headers."""
    forwarded: Trust | None = written.forwarded_headers if written.forwarded_headers.networks else None
    proxies = written.proxy_protocol
    if forwarded is not None and proxies is not None and forwarded.networks != proxies.networks:
        raise ValueError(
            f"{name}: forwardedHeaders and proxyProtocol must trust the same peers, as ports trust them alike"
        )
    trusted = proxies or forwarded
    return (None, None) if trusted is None else (trusted.networks, proxies is not None or None)


def _connections(name: str, written: EntryPointSettings) -> ClientConnections:
    timeouts, transport = written.transport.responding_timeouts, written.transport
    forwarded = written.forwarded_headers
    said: dict[str, Any] = {
        "header_timeout_s": timeouts.read_timeout or None,
        "body_timeout_s": timeouts.read_timeout or None,
        "idle_timeout_s": timeouts.idle_timeout or None,
        "keep_alive_requests": transport.keep_alive_max_requests or None,
        "keep_alive_time_s": transport.keep_alive_max_time or None,
        "max_head": written.http.max_header_bytes,
        "max_streams": written.http2.max_concurrent_streams,
        "append_forwarded_for": False if forwarded.not_append_x_forwarded_for else None,
        "forwarded_scheme": forwarded.add_x_forwarded_scheme_headers or None,
        "encode_semicolons": written.http.encode_query_semicolons or None,
        "underscore_names": _UNDERSCORES.get(written.http.underscore_headers_strategy or ""),
    }
    if written.proxy_protocol is not None and not forwarded.networks:
        said |= {"forwarded_address": False, "forwarded_headers": False}
    try:
        return ClientConnections(**{field: value for field, value in said.items() if value is not None})
    except ValidationError as error:
        found = error.errors(include_url=False)[0]
        raise ValueError(f"{name}: {found['loc'][0]}: {found['msg']}") from error


def _redirect(point: EntryPoint, written: Redirection, ports: Mapping[str, EntryPoint]) -> HttpsRedirect:
    if point.protocol not in ("http", "tcp"):
        raise ValueError(f"{point.name}.http.redirections: only plain requests are redirected, and it has none")
    number = written.to.removeprefix(":")
    target = ports.get(written.to)
    if target is None and not (number.isascii() and number.isdecimal() and 0 < int(number) < 65536):
        raise ValueError(f"{point.name}.http.redirections.entryPoint.to: there is no entry point {written.to[:40]!r}")
    port = int(number) if target is None else target.port or _HTTPS
    return HttpsRedirect(port=port, status=301 if written.permanent else 302, keep_method=True)
