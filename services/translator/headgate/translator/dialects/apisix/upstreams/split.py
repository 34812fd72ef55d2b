"""Upstreams that stand within the plugin traffic-split: entries of the table, which the plugin names by their keys."""

import hashlib
import json
from collections.abc import Iterator
from typing import Any, NamedTuple

from headgate.common.problems import Problem
from headgate.common.table import Endpoint, Provenance, Upstream
from headgate.common.table.upstream_key import UpstreamKey
from headgate.translator.dialects.apisix.context import Context
from headgate.translator.dialects.apisix.models.split import InlineUpstream
from headgate.translator.dialects.apisix.models.upstream import LoadBalancer, UpstreamSettings
from headgate.translator.dialects.apisix.upstreams.upstream import read_fields
from headgate.translator.fragments.fragment import BackendUse
from headgate.translator.manifests.specs import read_part
from headgate.translator.upstreams.resolution import ResolvedUpstream
from headgate.translator.world.graph import Lookups


class SplitBackend(NamedTuple):
    """An upstream with nodes of its own, named by what it says."""

    cluster: str
    namespace: str
    written: str
    """JSON with its keys in order."""

    @property
    def kind(self) -> str:
        """It is no object."""
        return "traffic-split"

    @property
    def name(self) -> str:
        """Digest of what it says."""
        return hashlib.sha256(self.written.encode()).hexdigest()[:16]

    @property
    def port(self) -> None:
        """It is no port of a Service."""
        return None

    @property
    def key(self) -> str:
        """Key of the upstream in the table."""
        return str(UpstreamKey(self.cluster, self.namespace, self.name, self.kind))

    def resolve(self, lookups: Lookups) -> ResolvedUpstream:
        """Return its nodes as endpoints."""
        upstream = InlineUpstream.model_validate_json(self.written)
        greatest = max(node.priority for node in upstream.nodes)
        endpoints = (
            Endpoint(
                address=node.host.lower(),
                port=upstream.port_of(node),
                weight=node.weight,
                cluster=self.cluster,
                priority=min(greatest - node.priority, 127),
            )
            for node in upstream.nodes
        )
        entry = Upstream(
            key=self.key,
            endpoints=tuple(sorted(endpoints, key=lambda each: (each.address, each.port))),
            provenance=Provenance(cluster=self.cluster, kind=self.kind, namespace=self.namespace, name=self.name),
            **read_fields(_settings(upstream), "", []),
        )
        return ResolvedUpstream(entry, None)

    def resolve_endpoints(self, lookups: Lookups) -> None:
        """Its nodes stand in the object that refers to it, and nowhere else."""


def lift_upstreams(
    config: dict[str, Any], field: str, namespace: str, context: Context, problems: list[Problem]
) -> tuple[dict[str, Any], tuple[BackendUse, ...]]:
    """Put keys in the place of the upstreams within a configuration of traffic-split; return it with these upstreams.

    Args:
        config: of the plugin, which stays as it is.
        field: where it stands.
        namespace: of the object.
        context: says of which cluster.
        problems: gets what is wrong with an upstream.
    """
    lifted: dict[str, Any] = json.loads(json.dumps(config))
    uses = []
    cluster = context.lookups.cluster
    for place, choice in _choices(lifted):
        at = f"{field}.{place}.upstream"
        written = choice.pop("upstream")
        part = read_part(InlineUpstream, written, at, problems)
        if part is not None:
            found: list[Problem] = []
            read_fields(_settings(part.value), at, found)
            problems += (one.model_copy(update={"field": _spelled(one.field)}) for one in found)
            backend = SplitBackend(cluster, namespace, json.dumps(written, sort_keys=True))
            choice["upstream_id"] = backend.key
            uses.append(BackendUse(backend, at, at))
    return lifted, tuple(uses)


def _choices(config: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Find the choices with an upstream of their own; what has another shape is for the plugin's own check."""
    rules = config.get("rules")
    for number, rule in enumerate(rules if isinstance(rules, list) else ()):
        choices = rule.get("weighted_upstreams") if isinstance(rule, dict) else None
        for index, choice in enumerate(choices if isinstance(choices, list) else ()):
            if isinstance(choice, dict) and "upstream" in choice and "upstream_id" not in choice:
                yield f"rules[{number}].weighted_upstreams[{index}]", choice


def _spelled(field: str) -> str:
    """Return a place in an ApisixUpstream as the plugin spells it."""
    return field.replace(".loadbalancer.", ".").replace(".upstreamHost", ".upstream_host")


def _settings(upstream: InlineUpstream) -> UpstreamSettings:
    """Write an upstream as an ApisixUpstream says the same."""
    balancer = LoadBalancer.model_validate({"type": upstream.type, "hashOn": upstream.hash_on, "key": upstream.key})
    return UpstreamSettings.model_validate(
        {
            "loadbalancer": balancer,
            "scheme": upstream.scheme,
            "passHost": upstream.pass_host,
            "upstreamHost": upstream.upstream_host,
        }
    )
