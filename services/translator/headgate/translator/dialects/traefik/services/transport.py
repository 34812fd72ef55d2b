"""ServersTransports and ServersTransportTCPs: TLS towards servers, and connections with them.

What keeps servers out that should not be spoken with is never left out: a transport that cannot be followed as a whole
closes the routes that use it.
"""

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple, TypeVar

from headgate.common.problems import Problem
from headgate.common.resources import JsonObject, ObjectRef
from headgate.common.table import BackendTls, Timeouts
from headgate.translator.dialects.traefik.document import SERVERS_TRANSPORTS, SERVERS_TRANSPORTS_TCP
from headgate.translator.dialects.traefik.models.transport import (
    ServersTransportSpec,
    ServersTransportTcpSpec,
    ServerTls,
)
from headgate.translator.dialects.traefik.references import Found, find_provided, find_referenced
from headgate.translator.dialects.traefik.tls.names import CIPHERS, NEWER_CIPHERS, VERSIONS
from headgate.translator.fragments.fragment import Fragment
from headgate.translator.manifests import texts
from headgate.translator.manifests.specs import read_part, refuse
from headgate.translator.objects.document import identify
from headgate.translator.sources.certificates import SECRETS
from headgate.translator.sources.config_maps import CONFIG_MAPS
from headgate.translator.world.graph import Lookups

_AUTHORITIES: Final = ("tls.ca", "ca.crt")
_DEFAULT_IDLE: Final = 0
"""Of `maxIdleConnsPerHost` is Go's default; a negative number keeps none."""


class BadTransport(ValueError):
    """A transport cannot be followed; `field` is the one of its spec to mend, empty for the object itself."""

    def __init__(self, reason: str, field: str, message: str) -> None:
        super().__init__(message)
        self.reason, self.field = reason, field


class Transport(NamedTuple):
    """How servers of HTTP are spoken to."""

    tls: BackendTls
    """For servers that speak TLS."""
    upstream: dict[str, Any]
    """Further fields of their upstreams."""
    timeouts: Timeouts = Timeouts()


class StreamTransport(NamedTuple):
    """How servers of TCP are spoken to."""

    tls: BackendTls | None
    """For routes that speak TLS with servers; None: as without a transport."""
    proxy_protocol: int | None


NO_TRANSPORT: Final = StreamTransport(None, None)

_Spec = TypeVar("_Spec", ServersTransportSpec, ServersTransportTcpSpec)
_Made = TypeVar("_Made")
_Maker = Callable[[_Spec, str, str, Lookups], _Made]
"""Of a spec, with cluster and namespace of the object."""

# References


def find_transport(name: str, own: str, cluster: str, lookups: Lookups, *, is_annotated: bool = False) -> Transport:
    """Return the ServersTransport that an object of the namespace `own` refers to.

    Args:
        name: as it is written.
        own: namespace of the object.
        cluster: of the object.
        lookups: where it is found.
        is_annotated: the name is an annotation's, and means an object of any namespace.

    Raises:
        BadReference: it is not there, or must not be referred to.
        BadTransport: it cannot be followed.
    """
    if is_annotated:
        found = find_provided(SERVERS_TRANSPORTS, name, lookups, own=own)
    else:
        found = find_referenced(SERVERS_TRANSPORTS, own, "", name, lookups)
    return _follow(found, ServersTransportSpec, _transport, cluster, lookups)


def find_stream_transport(name: str, own: str, cluster: str, lookups: Lookups) -> StreamTransport:
    """Return the ServersTransportTCP that an object of the namespace `own` refers to; raises as `find_transport`."""
    found = find_referenced(SERVERS_TRANSPORTS_TCP, own, "", name, lookups)
    return _follow(found, ServersTransportTcpSpec, _stream_transport, cluster, lookups)


def _follow(found: Found, model: type[_Spec], make: "_Maker[_Spec, _Made]", cluster: str, lookups: Lookups) -> _Made:
    problems: list[Problem] = []
    part = read_part(model, found.manifest.get("spec") or {}, "spec", problems)
    if part is None:
        raise BadTransport("InvalidValue", "", f"{found.namespace}/{found.name} cannot be read: {problems[0]}")
    return make(part.value, cluster, found.namespace, lookups)


# Objects


def translate_transport(ref: ObjectRef, manifest: JsonObject, lookups: Lookups) -> Fragment:
    """Return what is wrong with a ServersTransport. What it says takes effect in the routes that lead to it."""
    return _translate(ServersTransportSpec, _transport, ref, manifest, lookups)


def translate_transport_tcp(ref: ObjectRef, manifest: JsonObject, lookups: Lookups) -> Fragment:
    """Return what is wrong with a ServersTransportTCP."""
    return _translate(ServersTransportTcpSpec, _stream_transport, ref, manifest, lookups)


def _translate(
    model: type[_Spec], make: "_Maker[_Spec, _Made]", ref: ObjectRef, manifest: JsonObject, lookups: Lookups
) -> Fragment:
    problems: list[Problem] = []
    part = read_part(model, manifest.get("spec") or {}, "spec", problems)
    try:
        if part is not None:
            make(part.value, ref.cluster, ref.namespace, lookups)
    except BadTransport as error:
        problems.append(refuse(error.reason, f"spec.{error.field}", str(error)))
    return Fragment(identify(ref, manifest), problems=tuple(problems))


# What they say


def _transport(spec: ServersTransportSpec, cluster: str, namespace: str, lookups: Lookups) -> Transport:
    said: dict[str, Any] = {}
    idle = spec.max_idle_conns_per_host
    if idle is not None and idle != _DEFAULT_IDLE:
        said["max_idle"] = max(idle, 0)
    waits = spec.forwarding_timeouts
    if waits is not None and waits.idle_conn_timeout is not None and waits.idle_conn_timeout > 0:
        said["idle_timeout_s"] = waits.idle_conn_timeout
    timeouts = Timeouts()
    if waits is not None:
        bounds = {"connect_s": waits.dial_timeout, "read_s": waits.response_header_timeout}
        timeouts = Timeouts(**{name: value for name, value in bounds.items() if value is not None and value > 0})
    tls = _tls(spec, "", cluster, namespace, lookups)
    return Transport(tls.model_copy(update=_versions(spec)), said, timeouts)


def _stream_transport(spec: ServersTransportTcpSpec, cluster: str, namespace: str, lookups: Lookups) -> StreamTransport:
    tls = _tls(spec.tls, "tls.", cluster, namespace, lookups) if spec.tls is not None else None
    return StreamTransport(tls, spec.proxy_protocol.version if spec.proxy_protocol is not None else None)


def _tls(written: ServerTls, prefix: str, cluster: str, namespace: str, lookups: Lookups) -> BackendTls:
    if written.spiffe is not None:
        message = "identities by SPIFFE are not checked: name authorities and names"
        raise BadTransport("UnsupportedField", f"{prefix}spiffe", message)
    said: dict[str, Any] = {"verify": not written.insecure_skip_verify, "server_name": written.server_name}
    if not written.insecure_skip_verify:
        said["subject_names"] = _subject_names(written, prefix)
    if lookups.is_assumed:
        return BackendTls(**said)
    if not written.insecure_skip_verify:
        said["ca_pem"] = _authorities(written, prefix, namespace, lookups)
    if written.certificates_secrets:
        said |= _own_certificate(written.certificates_secrets, prefix, cluster, namespace, lookups)
    return BackendTls(**said)


def _subject_names(written: ServerTls, prefix: str) -> tuple[str, ...]:
    if written.peer_cert_uri:
        message = "names that are URIs are not checked: use peerCertSANs of type DNS"
        raise BadTransport("UnsupportedField", f"{prefix}peerCertURI", message)
    for index, name in enumerate(written.peer_cert_sans):
        if name.type.upper() != "DNS" or not name.value:
            message = f"only names of type DNS are checked, not of type {name.type[:40]!r}"
            raise BadTransport("UnsupportedValue", f"{prefix}peerCertSANs[{index}]", message)
    return tuple(name.value.lower() for name in written.peer_cert_sans)


def _authorities(written: ServerTls, prefix: str, namespace: str, lookups: Lookups) -> str:
    """Return all authorities together; empty for those of the system."""
    found = []
    for index, source in enumerate(written.root_cas):
        field = f"{prefix}rootCAs[{index}]"
        if bool(source.secret) == bool(source.config_map):
            raise BadTransport("InvalidValue", field, "must name either a Secret or a ConfigMap")
        if source.secret:
            found.append(_of_secret(source.secret, field, namespace, lookups))
        else:
            found.append(_of_config_map(source.config_map, field, namespace, lookups))
    for index, name in enumerate(written.root_cas_secrets):
        found.append(_of_secret(name, f"{prefix}rootCAsSecrets[{index}]", namespace, lookups))
    return "".join(pem if pem.endswith("\n") else f"{pem}\n" for pem in found)


def _of_secret(name: str, field: str, namespace: str, lookups: Lookups) -> str:
    secret = lookups.get(SECRETS, namespace, name)
    if secret is None:
        raise BadTransport("SecretNotFound", field, f"Secret {namespace}/{name} not found")
    if not secret.authorities_pem:
        message = f"Secret {namespace}/{name} has no readable certificates under {' or '.join(_AUTHORITIES)}"
        raise BadTransport("InvalidSecret", field, message)
    return secret.authorities_pem


def _of_config_map(name: str, field: str, namespace: str, lookups: Lookups) -> str:
    config_map = lookups.get(CONFIG_MAPS, namespace, name)
    if config_map is None:
        message = f"ConfigMap {namespace}/{name} not found, or the watcher does not read it (HEADGATE_WATCH_REFERENCES)"
        raise BadTransport("ConfigMapNotFound", field, message)
    data = config_map.as_dict()
    written = next((data[key] for key in _AUTHORITIES if data.get(key)), "")
    try:
        return texts.certificates(written)
    except ValueError as error:
        keys = " or ".join(_AUTHORITIES)
        message = f"ConfigMap {namespace}/{name} has no readable certificates under {keys}: {error}"
        raise BadTransport("InvalidConfigMap", field, message) from error


def _own_certificate(
    names: Sequence[str], prefix: str, cluster: str, namespace: str, lookups: Lookups
) -> dict[str, Any]:
    """Return the certificate that gateways have for servers: that of the first Secret."""
    field, name = f"{prefix}certificatesSecrets[0]", names[0]
    secret = lookups.get(SECRETS, namespace, name)
    if secret is None:
        raise BadTransport("SecretNotFound", field, f"Secret {namespace}/{name} not found")
    if secret.sealed is None or secret.sealed.certificate is None:
        message = f"Secret {namespace}/{name} {secret.problem or 'has no certificate'}"
        raise BadTransport("InvalidSecret", field, message)
    return {
        "certificate_pem": secret.sealed.certificate.chain_pem,
        "private_key": secret.sealed.values[secret.key_field].of(cluster),
    }


def _versions(spec: ServersTransportSpec) -> dict[str, str]:
    """Return which versions of TLS and which suites are offered to servers."""
    for field, name in (("minVersion", spec.min_version), ("maxVersion", spec.max_version)):
        if name and name not in VERSIONS:
            raise BadTransport("InvalidValue", field, f"must be one of {', '.join(VERSIONS)}, but is {name[:40]!r}")
    if spec.max_version and VERSIONS[spec.max_version] < "1.3":
        message = f"gateways speak the newest version that servers know: leave {spec.max_version} out"
        raise BadTransport("UnsupportedValue", "maxVersion", message)
    said = {}
    if spec.min_version and VERSIONS[spec.min_version] >= "1.2":
        said["min_version"] = VERSIONS[spec.min_version]
    chosen = [name for name in spec.cipher_suites if name not in NEWER_CIPHERS]
    for index, name in enumerate(spec.cipher_suites):
        if name not in CIPHERS and name not in NEWER_CIPHERS:
            message = f"is no suite of Go's crypto/tls: {name[:60]!r}"
            raise BadTransport("InvalidValue", f"cipherSuites[{index}]", message)
    if chosen:
        try:
            said["ciphers"] = texts.ciphers(":".join(dict.fromkeys(CIPHERS[name] for name in chosen)))
        except ValueError as error:
            raise BadTransport("InvalidValue", "cipherSuites", f"names no suite that gateways have: {error}") from error
    return said
