"""A host that one namespace owns, and objects of others that claim a part of it."""

from collections.abc import Mapping
from typing import Any

from fakes.translator.apisix import route, rule
from fakes.translator.deltas import applied, ingress, ref_of, service
from headgate.common.problems import Problem
from headgate.common.table import VirtualHost
from headgate.gateway.table.explaining.explain import explain
from headgate.gateway.table.view import EntryView
from headgate.translator.assembly.boundaries import Boundaries, HostSharing
from headgate.translator.offline import translate_all

OLD, NEW, NEWEST = "2020-01-01T00:00:00Z", "2026-01-01T00:00:00Z", "2026-02-01T00:00:00Z"

VICTIM = ingress("shop", host="open.test", namespace="team-a", created=OLD)

Annotations = Mapping[str, str]


def guest(path: str = "/", annotations: Annotations | None = None, **extra: Any) -> Any:
    """An Ingress of another namespace for the same host; `path_type` is ImplementationSpecific by default."""
    path_type = extra.pop("path_type", "ImplementationSpecific")
    name = extra.pop("name", "guest")
    fields: Any = {"namespace": "team-b", "created": NEW, **extra}
    written = {f"headgate.dev/{name}": value for name, value in (annotations or {}).items()}
    made = ingress(name, host="open.test", path=path, annotations=written, **fields)
    made["spec"]["rules"][0]["http"]["paths"][0]["pathType"] = path_type
    return made


def apisix_guest(*paths: str, name: str = "guest", **fields: Any) -> Any:
    return route(rule("r", *paths, hosts=["open.test"], **fields), name=name, namespace="team-b", creationTimestamp=NEW)


class Table:
    """What some objects make."""

    def __init__(self, *manifests: Any, sharing: HostSharing = "paths", also: Mapping[str, Any] | None = None) -> None:
        services = [service(namespace=namespace) for namespace in ("team-a", "team-b", "team-c")]
        deltas = [applied(one) for one in (*services, *manifests)]
        deltas += [applied(one, cluster) for cluster, several in (also or {}).items() for one in several]
        self.offline = translate_all(deltas, boundaries=Boundaries(sharing))
        self.view = EntryView(self.offline.entries)

    def taker(self, path: str, headers: Annotations | None = None, host: str = "open.test") -> str | None:
        """Return namespace and name of the object whose route takes a request."""
        table = self.view.entry(VirtualHost, host)
        found = explain(self.view, "GET", host, path, headers or {}).winner
        named = {f"{host}|{one.name}": one.provenance for one in table.routes} if table else {}
        return f"{named[found].namespace}/{named[found].name}" if found else None

    def host(self, host: str = "open.test") -> VirtualHost:
        """Return a virtual host."""
        found = self.view.entry(VirtualHost, host)
        assert found is not None
        return found

    def lost(self, manifest: Any, cluster: str = "a") -> list[Problem]:
        """Return what an object hears of the hosts of others."""
        problems = self.offline.problems[ref_of(manifest, cluster)]
        return [problem for problem in problems if problem.reason == "HostNotOwned"]


def owner(*paths: tuple[str, str], annotations: Annotations | None = None) -> Any:
    made = ingress("shop", host="open.test", namespace="team-a", created=OLD)
    backend = made["spec"]["rules"][0]["http"]["paths"][0]["backend"]
    made["spec"]["rules"][0]["http"]["paths"] = [
        {"path": path, "pathType": path_type, "backend": backend} for path, path_type in paths
    ]
    made["metadata"]["annotations"] = {f"headgate.dev/{name}": value for name, value in (annotations or {}).items()}
    return made


# Sharing

SHARED = owner(("/", "Prefix"), annotations={"host-sharing-namespaces": "team-b"})
