"""What the fake API server knows of resources: validation, selectors, patches, and how objects and kinds are listed."""

from typing import Any

from fakes.kubernetes.faults import SeenRequest
from fakes.kubernetes.store import JsonObject, Resource, invalid
from fakes.kubernetes.watch import Matches

BUILT_IN: dict[str, tuple[Resource, ...]] = {
    "v1": (
        Resource("", "services", "Service"),
        Resource("", "endpoints", "Endpoints"),
        Resource("", "pods", "Pod"),
        Resource("", "secrets", "Secret"),
        Resource("", "configmaps", "ConfigMap"),
        Resource("", "namespaces", "Namespace", namespaced=False),
    ),
    "networking.k8s.io/v1": (
        Resource("networking.k8s.io", "ingresses", "Ingress"),
        Resource("networking.k8s.io", "ingressclasses", "IngressClass", namespaced=False),
    ),
    "discovery.k8s.io/v1": (Resource("discovery.k8s.io", "endpointslices", "EndpointSlice"),),
    "events.k8s.io/v1": (Resource("events.k8s.io", "events", "Event"),),
    "coordination.k8s.io/v1": (Resource("coordination.k8s.io", "leases", "Lease"),),
    "admissionregistration.k8s.io/v1": (
        Resource(
            "admissionregistration.k8s.io",
            "validatingwebhookconfigurations",
            "ValidatingWebhookConfiguration",
            namespaced=False,
        ),
    ),
}
_EVENT_FIELDS = ("eventTime", "reportingController", "reportingInstance", "action", "reason", "type")


def validate(wanted: JsonObject, *, allows_loopback: bool) -> None:
    """Refuse what a real server refuses."""
    name = wanted.get("metadata", {}).get("name", "")
    if wanted.get("kind") == "EndpointSlice" and not allows_loopback:
        for place, endpoint in enumerate(wanted.get("endpoints") or ()):
            for address in endpoint.get("addresses", ()):
                if address.startswith("127.") or address == "::1":
                    raise invalid(
                        "EndpointSlice",
                        "discovery.k8s.io",
                        name,
                        f"endpoints[{place}].addresses[0]",
                        f'Invalid value: "{address}": may not be in the loopback range (127.0.0.0/8, ::1/128)',
                    )
    if wanted.get("kind") == "Event":
        _validate_event(wanted)


def _validate_event(wanted: JsonObject) -> None:
    metadata = wanted["metadata"]
    name = metadata.get("name", "")
    for field in _EVENT_FIELDS:
        if not wanted.get(field):
            raise invalid("Event", "", name, field, "Required value")
    if metadata.get("generateName", "").endswith("."):
        raise invalid("Event", "", name, "metadata.generateName", "Invalid value: a name may not start so")
    if len(wanted.get("note", "").encode()) > 1024:
        raise invalid("Event", "", name, "note", "Too long: may not be more than 1024 bytes")
    if wanted.get("regarding", {}).get("namespace", "default") != metadata.get("namespace"):
        raise invalid("Event", "", name, "regarding.namespace", "Invalid value: does not match event.namespace")


def selector(seen: SeenRequest) -> Matches:
    labels = _terms(seen.query.get("labelSelector", ""))
    fields = _terms(seen.query.get("fieldSelector", ""))

    def matches(item: JsonObject) -> bool:
        metadata = item["metadata"]
        if seen.namespace and metadata.get("namespace") != seen.namespace:
            return False
        here = {"type": item.get("type", ""), "metadata.name": metadata["name"]}
        held = metadata.get("labels") or {}
        return all((here.get(key) == value) is wanted for key, value, wanted in fields) and all(
            (held.get(key) == value) is wanted for key, value, wanted in labels
        )

    return matches


def _terms(text: str) -> list[tuple[str, str, bool]]:
    found = []
    for term in filter(None, text.split(",")):
        key, _, value = term.partition("=")
        found.append((key.rstrip("!"), value.lstrip("="), not key.endswith("!")))
    return found


def typed(item: JsonObject, resource: Resource, version: str) -> JsonObject:
    return {"kind": resource.kind, "apiVersion": version, **untyped(item)}


def untyped(item: JsonObject) -> JsonObject:
    return {name: value for name, value in item.items() if name not in ("kind", "apiVersion")}


def merge(target: Any, patch: Any, *, by_name: bool = False) -> Any:
    """RFC 7396; or a strategic merge, as far as lists go whose items are told apart by `name`."""
    if by_name and isinstance(patch, list):
        changes = {item["name"]: item for item in patch}
        return [merge(item, changes.get(item["name"], {}), by_name=True) for item in target]
    if not isinstance(patch, dict):
        return patch
    merged = dict(target) if isinstance(target, dict) else {}
    for name, value in patch.items():
        if value is None:
            merged.pop(name, None)
        else:
            merged[name] = merge(merged.get(name), value, by_name=by_name)
    return merged


def discovery(version: str, resources: list[Resource]) -> JsonObject:
    verbs = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"]
    described = [
        {
            "name": one.resource,
            "singularName": one.kind.lower(),
            "namespaced": one.namespaced,
            "kind": one.kind,
            "verbs": verbs,
        }
        for one in resources
    ]
    return {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": version, "resources": described}
