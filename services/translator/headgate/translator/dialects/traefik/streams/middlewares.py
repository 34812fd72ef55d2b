"""MiddlewareTCPs: which networks may connect, and how often an address."""

from collections.abc import Iterator, Sequence
from ipaddress import IPv4Network, IPv6Network, ip_network
from typing import Final, NamedTuple

from headgate.common.problems import Problem, Severity
from headgate.common.resources import JsonObject, ObjectRef
from headgate.common.resources.traefik import MIDDLEWARE_TCP
from headgate.translator.dialects.traefik.document import STORED
from headgate.translator.dialects.traefik.models.fields import ObjectReference
from headgate.translator.dialects.traefik.models.stream import MiddlewareTcpSpec
from headgate.translator.dialects.traefik.references import BadReference, find_referenced
from headgate.translator.dialects.traefik.rules.clients import read_network
from headgate.translator.fragments.fragment import Fragment
from headgate.translator.manifests.specs import read_part, refuse
from headgate.translator.objects.document import identify
from headgate.translator.world.graph import Lookups

_EVERYWHERE: Final = (ip_network("0.0.0.0/0"), ip_network("::/0"))

Network = IPv4Network | IPv6Network


class Admission(NamedTuple):
    """Who may connect."""

    networks: tuple[Network, ...] = _EVERYWHERE
    most: int | None = None
    """Connections of one address at once."""
    fault: str = ""
    """Why no client may; empty if there is no such reason."""

    @property
    def allowed(self) -> tuple[str, ...]:
        """The networks as the table has them: none are those of all clients."""
        found = dict.fromkeys(self.networks)
        return () if found.keys() == set(_EVERYWHERE) else tuple(map(str, found))


def translate_middleware_tcp(ref: ObjectRef, manifest: JsonObject, lookups: Lookups) -> Fragment:
    """Return what is wrong with a MiddlewareTCP. What it says takes effect in the routes that use it."""
    problems: list[Problem] = []
    _read(manifest, problems)
    return Fragment(identify(ref, manifest), problems=tuple(problems))


def follow_middlewares(
    listed: Sequence[ObjectReference], namespace: str, field: str, lookups: Lookups, problems: list[Problem]
) -> Admission:
    """Return whom the middlewares admit that a route in a namespace lists: no client if one cannot be followed."""
    networks: tuple[Network, ...] = _EVERYWHERE
    fault, most = "", None
    for index, reference in enumerate(() if lookups.is_assumed else listed):
        found: list[Problem] = []
        try:
            target = find_referenced(STORED[MIDDLEWARE_TCP], namespace, reference.namespace, reference.name, lookups)
            one = _read(target.manifest, found)
            networks = tuple(_common(networks, one.networks))
            most = min(filter(None, (most, one.most)), default=None)
        except BadReference as error:
            found.append(refuse(error.reason, "", str(error)))
        wrong = next((problem for problem in found if problem.severity is Severity.ERROR), None)
        if wrong is not None:
            fault = f"MiddlewareTCP {reference.name}: {wrong.message}"
            problems.append(refuse(wrong.reason, f"{field}[{index}].name", fault, reference.name))
    return Admission(networks, most, fault)


def _read(manifest: JsonObject, problems: list[Problem]) -> Admission:
    """Return whom a MiddlewareTCP admits."""
    part = read_part(MiddlewareTcpSpec, manifest.get("spec"), "spec", problems)
    if part is None:
        return Admission()
    spec = part.value
    kinds = [name for name in type(spec).model_fields if getattr(spec, name) is not None]
    if len(kinds) != 1:
        written = ", ".join(type(spec).model_fields[kind].alias or kind for kind in kinds) or "none"
        message = f"must have one of inFlightConn and ipAllowList, but has {written}"
        problems.append(refuse("InvalidValue" if kinds else "Required", "spec", message))
        return Admission()
    if spec.in_flight_conn is not None:
        if not spec.in_flight_conn.amount:
            message = "must be 1 at least: 0 refuses all connections"
            problems.append(refuse("InvalidValue", "spec.inFlightConn.amount", message))
        return Admission(most=spec.in_flight_conn.amount)
    field, allowed = "ipAllowList", spec.ip_allow_list
    if allowed is None:
        field, allowed = "ipWhiteList", spec.ip_white_list
    assert allowed is not None
    found: list[Network] = []
    for index, written in enumerate(allowed.source_range):
        try:
            found.append(ip_network(read_network(written)))
        except ValueError as error:
            problems.append(refuse("InvalidValue", f"spec.{field}.sourceRange[{index}]", str(error), written))
    if not allowed.source_range:
        message = "must have at least one network: without one all are refused"
        problems.append(refuse("Required", f"spec.{field}.sourceRange", message))
    return Admission(tuple(found))


def _common(some: Sequence[Network], others: Sequence[Network]) -> Iterator[Network]:
    """Yield the networks that both have: of two, one of which is within the other, the smaller one."""
    for one in some:
        for other in others:
            if one.version == other.version and one.overlaps(other):
                yield max(one, other, key=lambda network: network.prefixlen)
