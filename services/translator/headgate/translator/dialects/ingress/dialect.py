"""The dialect's interface: what it needs, which objects are ours, and their translation."""

from collections.abc import Iterable
from dataclasses import replace

from headgate.common.problems import Problem
from headgate.common.resources import JsonObject, ObjectRef
from headgate.translator.dialects.ingress.document import (
    INGRESSES,
    LEGACY_INGRESSES,
    IngressDocument,
    class_name,
)
from headgate.translator.dialects.ingress.fields import INGRESS_FIELDS
from headgate.translator.dialects.ingress.in_place import ALL_IN_PLACE
from headgate.translator.dialects.ingress.policy import Extensions
from headgate.translator.dialects.ingress.translate import identify, translate_ingress
from headgate.translator.fragments.fragment import Fragment, with_standing
from headgate.translator.manifests.reading import as_list, as_object, as_text
from headgate.translator.sources.addresses import FindAddresses, no_addresses
from headgate.translator.sources.certificates import SECRETS
from headgate.translator.sources.classes import (
    CLASS_IS_OURS,
    INGRESS_CLASSES,
    ClassQuestion,
    ClassSettings,
)
from headgate.translator.sources.policies import FindBackendPolicy, FindRoutePolicy, no_backend_policy, no_route_policy
from headgate.translator.sources.shared_plugins import FindPlugins, no_plugins
from headgate.translator.world.graph import Lookups
from headgate.translator.world.last_good import Standing


def find_ingress(lookups: Lookups, namespace: str, name: str, settings: ClassSettings) -> bool | None:
    """Return whether an Ingress is ours by its class; None where there is none of this namespace and name."""
    for stored in (INGRESSES, LEGACY_INGRESSES):
        document = lookups.get(stored, namespace, name)
        if document is not None:
            return _is_ours(document.decode(), lookups, settings)
    return None


def _is_ours(manifest: JsonObject, lookups: Lookups, settings: ClassSettings) -> bool:
    return lookups.derive(CLASS_IS_OURS, ClassQuestion(lookups.cluster, class_name(manifest), settings))


class IngressDialect:
    """Ingress v1 and the versions before it."""

    name = "ingress"
    roots = (INGRESSES, LEGACY_INGRESSES)
    reads = (INGRESS_CLASSES, SECRETS)
    fields = INGRESS_FIELDS

    def __init__(
        self,
        classes: ClassSettings,
        find_plugins: FindPlugins = no_plugins,
        find_addresses: FindAddresses = no_addresses,
        find_backend_policy: FindBackendPolicy = no_backend_policy,
        find_route_policy: FindRoutePolicy = no_route_policy,
    ) -> None:
        """Take the settings, and who finds what others say: plugins that annotations name, addresses, policies."""
        self._classes, self._find_addresses = classes, find_addresses
        self._extensions = Extensions(classes.plugin_names, find_plugins, find_backend_policy, find_route_policy)

    def concerns(self, document: IngressDocument) -> bool:
        """Whether an Ingress may contribute: its class is looked up later, as it may change without the object."""
        return True

    def check(self, ref: ObjectRef, manifest: JsonObject, document: IngressDocument) -> Iterable[Problem]:
        """Return what is wrong with an Ingress by itself: what its translation says while everything else is there."""
        return translate_ingress(ref, manifest, ALL_IN_PLACE, Extensions(self._classes.plugin_names)).problems

    def translate(self, ref: ObjectRef, lookups: Lookups) -> Fragment | None:
        """Return an Ingress' contribution; None where it is gone or of another class.

        The class is that of the present version: one that was given to another controller is not kept. Nor does a
        version stand in that was another controller's.
        """
        standing = self._standing(ref, lookups)
        if standing is None:
            return None
        present, good = (version and version.form and version.form.decode() for version in standing)
        if present is not None and not self.owns(present, lookups):
            return None
        if good is not None and not self.owns(good, lookups):
            good, standing = None, Standing(standing.present)
        served = present if good is None else good
        if served is None:
            return None
        fragment = with_standing(translate_ingress(ref, served, lookups, self._extensions), standing)
        addresses = self._find_addresses(lookups, class_name(served))
        return fragment if addresses is None else replace(fragment, addresses=addresses)

    @staticmethod
    def _standing(ref: ObjectRef, lookups: Lookups) -> Standing | None:
        """Servers of 1.14 to 1.21 serve one object in both API groups; it counts in the younger group only."""
        if ref.group == INGRESSES.kind.group:
            return lookups.standing(INGRESSES, ref.namespace, ref.name)
        if lookups.standing(INGRESSES, ref.namespace, ref.name) is not None:
            return None
        return lookups.standing(LEGACY_INGRESSES, ref.namespace, ref.name)

    def owns(self, manifest: JsonObject, lookups: Lookups) -> bool:
        """Whether an Ingress is ours by its class; see `classes`."""
        return _is_ours(manifest, lookups, self._classes)

    def refuse(self, ref: ObjectRef, document: IngressDocument, error: Exception) -> Fragment:
        """Stand in for an Ingress that made us fail. Its hosts stay its own, lest others take its requests."""
        message = f"Headgate failed on this object ({type(error).__name__}); its log has the details"
        manifest = document.decode()
        rules = map(as_object, as_list(as_object(manifest.get("spec")).get("rules")))
        return Fragment(
            identify(ref, manifest),
            hosts=tuple(dict.fromkeys(host for rule in rules if (host := as_text(rule.get("host"))))),
            problems=(Problem(reason="InternalError", message=message),),
        )
