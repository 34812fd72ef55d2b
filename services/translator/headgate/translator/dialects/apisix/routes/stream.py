"""Rules of an ApisixRoute for TCP connections and UDP sessions.

Ports open and close with the table: nothing has to be listed beforehand, as Apache APISIX wants it.
"""

import json
from collections.abc import Iterable
from ipaddress import ip_network
from typing import Any, NamedTuple

from headgate.common.problems import Problem
from headgate.common.resources import ObjectRef
from headgate.common.table import MqttConnect, Provenance, StreamRoute, WeightedUpstream
from headgate.translator.dialects.apisix.context import Context
from headgate.translator.dialects.apisix.models.plugin import Plugin
from headgate.translator.dialects.apisix.models.route import StreamRule
from headgate.translator.dialects.apisix.upstreams.backends import ServiceBackend
from headgate.translator.fragments.fragment import BackendUse, StreamClaim
from headgate.translator.manifests.specs import Part, refuse, warn
from headgate.translator.manifests.texts import server_names

_NEEDLESS = {"prometheus": "connections are counted anyway", "syslog": "connections are in the gateway's own log"}


class StreamTranslation(NamedTuple):
    """What becomes of one rule."""

    claim: StreamClaim
    use: BackendUse


def translate_stream(
    ref: ObjectRef, part: Part[StreamRule], context: Context, problems: list[Problem]
) -> StreamTranslation | None:
    """Return what a rule contributes; None where its port must stay closed, which goes to `problems`."""
    rule, field = part
    found: list[Problem] = []
    is_udp = rule.protocol == "UDP"
    names = _server_names(rule, f"{field}.match.host", found)
    plugins = [Part(plugin, f"{field}.plugins[{index}]") for index, plugin in enumerate(rule.plugins)]
    fields = read_stream_plugins(plugins, found, is_udp=is_udp, consequence="; the port stays closed")
    problems += found
    if any(problem.severity == "error" for problem in found):
        return None
    backend = ServiceBackend(
        ref.cluster,
        ref.namespace,
        rule.backend.service_name,
        rule.backend.service_port,
        rule.backend.resolve_granularity,
        rule.backend.subset,
        "udp" if is_udp else "tcp",
    )
    provenance = Provenance(cluster=ref.cluster, kind="ApisixRoute", namespace=ref.namespace, name=ref.name, rule=field)
    route = StreamRoute(
        key=f"{ref.cluster}/{ref.namespace}/{ref.name}/{rule.name}:{rule.match.ingress_port}/{rule.protocol.lower()}",
        protocol="udp" if is_udp else "tls" if names else "tcp",
        port=rule.match.ingress_port,
        server_names=names,
        terminate=bool(names),
        backends=(WeightedUpstream(upstream=backend.key),),
        provenance=provenance,
        **fields,
    )
    use = BackendUse(backend, f"{field}.backend.serviceName", f"{field}.backend.servicePort")
    return StreamTranslation(StreamClaim(route, f"{field}.match.ingressPort"), use)


def _server_names(rule: StreamRule, field: str, problems: list[Problem]) -> tuple[str, ...]:
    if not rule.match.host:
        return ()
    if rule.protocol == "UDP":
        problems.append(refuse("InvalidValue", field, "must be left out for UDP, which has no server names"))
        return ()
    try:
        return server_names(rule.match.host.lower())
    except ValueError as error:
        problems.append(refuse("InvalidHost", field, str(error), rule.match.host))
        return ()


def read_stream_plugins(
    plugins: Iterable[Part[Plugin]], problems: list[Problem], *, is_udp: bool, consequence: str = ""
) -> dict[str, Any]:
    """Return the fields of a stream route that stand for plugins.

    Args:
        plugins: as they are written.
        problems: where those go that cannot be followed.
        is_udp: whether some of it is for datagrams.
        consequence: what a plugin that cannot be followed leads to, for the messages.
    """
    fields: dict[str, Any] = {}
    for plugin, at in plugins:
        if not plugin.enable:
            continue
        try:
            if plugin.name == "ip-restriction":
                fields["allowed_networks"] = _allowed_networks(plugin)
            elif plugin.name == "limit-conn":
                fields["max_connections"] = _max_connections(plugin)
            elif plugin.name == "mqtt-proxy":
                fields["mqtt"] = _mqtt(plugin, is_udp=is_udp)
            elif plugin.name in _NEEDLESS:
                problems.append(warn("UnsupportedPlugin", f"{at}.name", f"not needed: {_NEEDLESS[plugin.name]}"))
            else:
                message = "there is no such plugin for streams; there are ip-restriction, limit-conn and mqtt-proxy"
                problems.append(refuse("UnknownPlugin", f"{at}.name", f"{message}{consequence}", plugin.name))
        except ValueError as error:
            problems.append(refuse("InvalidPlugin", f"{at}.config", f"plugin {plugin.name}: {error}{consequence}"))
    return fields


def _allowed_networks(plugin: Plugin) -> tuple[str, ...]:
    allowed, denied = plugin.config.get("whitelist"), plugin.config.get("blacklist")
    if bool(allowed) == bool(denied):
        raise ValueError("must have either a whitelist or a blacklist")
    try:
        networks = [ip_network(str(one), strict=False) for one in allowed or denied or ()]
    except (ValueError, TypeError):
        raise ValueError("must be a list of addresses and networks such as 10.0.0.0/8") from None
    if allowed:
        return tuple(map(str, networks))
    left = [ip_network("0.0.0.0/0"), ip_network("::/0")]
    for network in networks:
        left = [part for one in left for part in _without(one, network)]
    return tuple(map(str, sorted(left, key=lambda one: (one.version, int(one.network_address)))))


def _without(whole: Any, taken: Any) -> list[Any]:
    if whole.version != taken.version or not whole.overlaps(taken):
        return [whole]
    return list(whole.address_exclude(taken)) if taken.subnet_of(whole) else []


def _max_connections(plugin: Plugin) -> int:
    conn, burst = plugin.config.get("conn"), plugin.config.get("burst", 0)
    if type(conn) is not int or conn < 1 or type(burst) is not int or burst < 0:
        raise ValueError("must have conn, a whole number from 1, and may have burst, from 0")
    return conn + burst


def _mqtt(plugin: Plugin, *, is_udp: bool) -> MqttConnect:
    if is_udp:
        raise ValueError("is for TCP")
    name, level = plugin.config.get("protocol_name", "MQTT"), plugin.config.get("protocol_level")
    if type(level) is not int or level not in (3, 4, 5):
        levels = "4 for MQTT 3.1.1, 5 for MQTT 5, 3 for MQTT 3.1"
        raise ValueError(f"must have protocol_level: {levels}; it is {json.dumps(level)[:60]}")
    if not isinstance(name, str) or not name:
        raise ValueError(f"must have a text such as MQTT as protocol_name; it is {json.dumps(name)[:60]}")
    return MqttConnect(protocol_name=name, protocol_level=level)
