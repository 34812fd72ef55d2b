"""References from one object to another: by name, by namespace and name, or as `namespace-name@kubernetescrd`.

Objects of other namespaces are referred to only with the setting `HEADGATE_TRAEFIK_ALLOW_CROSS_NAMESPACE`. Without it
the third form is refused for objects of the own namespace too, as with Traefik: it does not say where the namespace
ends.
"""

from collections.abc import Iterator
from typing import Final, NamedTuple

from headgate.common.resources import JsonObject
from headgate.common.selection import matches_any
from headgate.translator.dialects.traefik.document import InBothGroups
from headgate.translator.fragments.fragment import BackendUse
from headgate.translator.sources.services import EXTERNAL_NAME, Service
from headgate.translator.upstreams.overridden import OverriddenService
from headgate.translator.world.graph import Lookups

_SEPARATOR: Final = "@"
_OURS: Final = "kubernetescrd"
_EXTERNAL: Final = "HEADGATE_TRAEFIK_ALLOW_EXTERNAL_NAME_SERVICES"
_NAMESPACES: Final = "HEADGATE_TRAEFIK_CROSS_PROVIDER_NAMESPACES"
_SETTING: Final = "HEADGATE_TRAEFIK_ALLOW_CROSS_NAMESPACE"


class BadReference(ValueError):
    """A reference that cannot be followed; `reason` is that of the condition."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


class Found(NamedTuple):
    """An object that is referred to."""

    namespace: str
    name: str
    manifest: JsonObject


def check_namespace(own: str, other: str, lookups: Lookups) -> str:
    """Return the namespace that is meant, which is the own one where none is written.

    Raises:
        BadReference: it is another one, which the settings do not allow.
    """
    if other and other != own and not lookups.settings.traefik.allow_cross_namespace:
        message = f"is in namespace {other}, and references to other namespaces are off: {_SETTING}=true allows them"
        raise BadReference("RefNotPermitted", message)
    return other or own


def check_service_type(service: Service | None, namespace: str, name: str, lookups: Lookups) -> None:
    """Check that a Service may be referred to, whatever its namespace.

    Raises:
        BadReference: it is of type ExternalName, which the settings do not allow.
    """
    if service is not None and service.type == EXTERNAL_NAME and not lookups.settings.traefik.allow_external_names:
        message = f"Service {namespace}/{name} is of type ExternalName, which are off: {_EXTERNAL}=true allows them"
        raise BadReference("ExternalNameDisabled", message)


def use_service(upstream: OverriddenService, field: str, lookups: Lookups) -> BackendUse:
    """Return the use of a Service by the reference that stands at a field."""
    may_be_empty = lookups.settings.traefik.allow_empty_services
    return BackendUse(upstream, f"{field}.name", f"{field}.port", may_be_empty)


def uses_cluster_ip(native_lb: bool | None, lookups: Lookups) -> bool:
    """Whether a Service is asked at its cluster IP, which a reference may say."""
    return lookups.settings.traefik.native_lb_by_default if native_lb is None else native_lb


def find_referenced(stored: InBothGroups, own: str, namespace: str, name: str, lookups: Lookups) -> Found:
    """Return the object that a reference from the namespace `own` means.

    Raises:
        BadReference: there is no such object, or it must not be referred to.
    """
    kind = stored.newer.kind.kind
    if _SEPARATOR not in name:
        where = check_namespace(own, namespace, lookups)
        manifest = stored.find(lookups, where, name)
        if manifest is None:
            raise BadReference(f"{kind}NotFound", f"{kind} {where}/{name} not found")
        return Found(where, name, manifest)
    _check_provided(own, lookups, f"name the {kind} alone, or ")
    if name.endswith(f"{_SEPARATOR}{_OURS}") and not lookups.settings.traefik.allow_cross_namespace:
        message = f"references with @{_OURS} are off: name the {kind} alone, or set {_SETTING}=true"
        raise BadReference("RefNotPermitted", message)
    return find_provided(stored, name, lookups)


def _check_provided(own: str, lookups: Lookups, instead: str = "") -> None:
    if not matches_any(own, lookups.settings.traefik.cross_provider_namespaces):
        what = f"references with {_SEPARATOR} are off for namespace {own}"
        raise BadReference("RefNotPermitted", f"{what}: {instead}add the namespace to {_NAMESPACES}")


def find_provided(stored: InBothGroups, name: str, lookups: Lookups, *, own: str = "") -> Found:
    """Return the object of any namespace that `NAMESPACE-NAME@kubernetescrd` means, as annotations and settings say it.

    Args:
        stored: the kind.
        name: as it is written.
        lookups: where it is found.
        own: namespace of the object whose annotation it is; empty: a setting says it.

    Raises:
        BadReference: there is no such object, it is of another provider, or must not be referred to.
    """
    if own:
        _check_provided(own, lookups)
    kind = stored.newer.kind.kind
    whole, _, provider = name.rpartition(_SEPARATOR)
    if provider != _OURS:
        provided = f"objects of Traefik's provider {provider!r} are not read" if whole else "no provider is named"
        message = f"{provided}; make it a {kind} of this cluster, and name it NAMESPACE-NAME@{_OURS}"
        raise BadReference("RefNotPermitted", message)
    for where, short in _splits(whole):
        if (manifest := stored.find(lookups, where, short)) is not None:
            return Found(where, short, manifest)
    raise BadReference(f"{kind}NotFound", f"there is no {kind} whose namespace and name make {whole!r}")


def _splits(whole: str) -> Iterator[tuple[str, str]]:
    """Yield the namespaces and names that a joined name may stand for."""
    parts = whole.split("-")
    for place in range(1, len(parts)):
        yield "-".join(parts[:place]), "-".join(parts[place:])
