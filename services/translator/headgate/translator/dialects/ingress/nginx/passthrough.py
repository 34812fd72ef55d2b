"""`ssl-passthrough`: TLS connections for a host go to the Service as they are, told apart by their server names.

Only the Service of path `/` counts, and requests over plain HTTP go on being served by the Ingress' routes.
"""

from collections.abc import Callable, Iterable, Iterator

from headgate.common.resources import INGRESS, ObjectRef
from headgate.common.table import ANY_HOST, Provenance, StreamRoute, WeightedUpstream
from headgate.translator.dialects.ingress.parse import HostRule, ServiceBackend
from headgate.translator.fragments.fragment import BackendUse, StreamClaim
from headgate.translator.fragments.upstream_refs import ServicePortRef


def passed_through(
    ref: ObjectRef, rules: Iterable[HostRule], port_of: Callable[[str, ServiceBackend], int | str]
) -> Iterator[tuple[BackendUse, StreamClaim]]:
    """Yield the stream route of each host that has a path `/`; `port_of` returns the port that a backend means."""
    for rule in rules:
        root = next((path for path in rule.paths if path.path == "/"), None)
        if rule.host == ANY_HOST or root is None or not isinstance(root.backend, ServiceBackend):
            continue
        backend = ServicePortRef(
            ref.cluster, ref.namespace, root.backend.service, port_of(ref.namespace, root.backend), "tcp"
        )
        provenance = Provenance(
            cluster=ref.cluster, kind=INGRESS.kind, namespace=ref.namespace, name=ref.name, rule=root.field
        )
        route = StreamRoute(
            key=f"{ref.cluster}/{ref.namespace}/{ref.name}:{rule.host}/tls",
            protocol="tls",
            port=0,
            server_names=(rule.host,),
            backends=(WeightedUpstream(upstream=backend.key),),
            provenance=provenance,
        )
        yield (
            BackendUse(backend, f"{root.backend.field}.name", f"{root.backend.field}.port"),
            StreamClaim(route, rule.field),
        )
