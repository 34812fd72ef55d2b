"""What the ConfigMap says of clients' connections, as entries of the gateway's own listeners."""

from typing import Any, Final

from headgate.common.log_variables import unknown_log_variables
from headgate.common.resources import ObjectRef
from headgate.common.table import OWN_LISTENERS, Listener, Provenance, own_listener
from headgate.common.table.listener import AccessLogFormat, ClientConnections
from headgate.translator.annotations.reading import Reading

_EVERYBODY: Final = ("0.0.0.0/0", "::/0")
_AS_THEY_ARE: Final = (
    "header_timeout_s",
    "body_timeout_s",
    "idle_timeout_s",
    "keep_alive_requests",
    "max_head",
    "real_ip_header",
)
_MAX_STREAMS: Final = 1024
_LOG_FORMAT: Final = "log-format-upstream"


def own_listeners(ref: ObjectRef, reading: Reading) -> tuple[Listener, ...]:
    """Return the entries of the gateway's own listeners; none where nothing is said of them."""
    port = reading.group("port")
    said = _trust(port)
    connections = _connections(port, trusts=bool(said))
    if connections:
        said["connections"] = ClientConnections(**connections)
    line = _access_log(reading)
    if line is not None:
        said["access_log"] = line
    if not said:
        return ()
    source = Provenance(cluster=ref.cluster, kind="ConfigMap", namespace=ref.namespace, name=ref.name)
    own = (own_listener(key).model_copy(update={"provenance": source}) for key in OWN_LISTENERS)
    return tuple(listener.model_copy(update=said) for listener in own)


def _trust(port: dict[str, Any]) -> dict[str, Any]:
    if not any(port.get(name) for name in ("forwarded", "real_ip", "proxy_protocol")):
        return {}
    said: dict[str, Any] = {"trusted_proxies": port.get("networks") or _EVERYBODY}
    if port.get("proxy_protocol"):
        said["proxy_protocol"] = True
    return said


def _connections(port: dict[str, Any], *, trusts: bool) -> dict[str, Any]:
    """Return the fields that are said.

    Where PROXY headers name the client, no other header does, as with nginx; unless that client is a proxy that is
    believed what it forwards.
    """
    fields = {name: port[name] for name in _AS_THEY_ARE if port.get(name)}
    if port.get("idle_timeout_s") == 0:
        fields["keep_alive_requests"] = 1
    if port.get("max_streams"):
        fields["max_streams"] = min(port["max_streams"], _MAX_STREAMS)
    if port.get("underscores"):
        fields["underscore_names"] = "allow"
    if port.get("forwarded") and port.get("full_forwarded_for"):
        fields["full_forwarded_for"] = True
    if trusts and not port.get("forwarded"):
        fields["forwarded_headers"] = False
        if port.get("proxy_protocol"):
            fields["forwarded_address"] = False
    return fields


def _access_log(reading: Reading) -> AccessLogFormat | None:
    written = reading.group("log")
    line = written.get("format")
    if not line:
        return None
    unknown = sorted(set(unknown_log_variables(line)))
    if unknown:
        names = ", ".join(f"${name}" for name in unknown[:8])
        reading.caution(_LOG_FORMAT, f"{names} are not known here and are written as -")
    escape = "json" if written.get("as_json") else "none" if written.get("as_it_is") else "default"
    return AccessLogFormat(format=line, escape=escape)
