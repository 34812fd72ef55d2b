"""The dialect's interface: what it needs, which objects are ours, and their translation."""

from headgate.common.problems import Problem
from headgate.common.resources import JsonObject, ObjectRef
from headgate.translator.certificates import SECRETS
from headgate.translator.dialects.ingress.classes import (
    CLASS_IS_OURS,
    INGRESS_CLASSES,
    ClassQuestion,
    ClassSettings,
)
from headgate.translator.dialects.ingress.document import (
    CLASS_ANNOTATION,
    INGRESSES,
    LEGACY_INGRESSES,
    IngressDocument,
)
from headgate.translator.dialects.ingress.translate import identify, translate_ingress
from headgate.translator.fragment import Fragment
from headgate.translator.graph import Lookups
from headgate.translator.manifest import as_object, as_text, metadata


def class_name(manifest: JsonObject) -> str | None:
    """Return the class that an Ingress names; None where it names none."""
    written = as_object(manifest.get("spec")).get("ingressClassName")
    annotated = as_text(as_object(metadata(manifest).get("annotations")).get(CLASS_ANNOTATION))
    return as_text(written) or annotated or None


class IngressDialect:
    """Ingress v1 and the versions before it."""

    name = "ingress"
    roots = (INGRESSES, LEGACY_INGRESSES)
    reads = (INGRESS_CLASSES, SECRETS)

    def __init__(self, classes: ClassSettings) -> None:
        self._classes = classes

    def concerns(self, document: IngressDocument) -> bool:
        """Whether an Ingress may contribute: its class is looked up later, as it may change without the object."""
        return True

    def translate(self, ref: ObjectRef, lookups: Lookups) -> Fragment | None:
        """Return an Ingress' contribution; None where it is gone or of another class."""
        document = self._read(ref, lookups)
        if document is None:
            return None
        manifest = document.decode()
        if not self.owns(manifest, lookups):
            return None
        return translate_ingress(ref, manifest, lookups, self._classes.plugin_names)

    @staticmethod
    def _read(ref: ObjectRef, lookups: Lookups) -> IngressDocument | None:
        """Servers of 1.14 to 1.21 serve one object in both API groups; it counts in the younger group only."""
        if ref.group == INGRESSES.kind.group:
            return lookups.get(INGRESSES, ref.namespace, ref.name)
        if lookups.get(INGRESSES, ref.namespace, ref.name) is not None:
            return None
        return lookups.get(LEGACY_INGRESSES, ref.namespace, ref.name)

    def owns(self, manifest: JsonObject, lookups: Lookups) -> bool:
        """Whether an Ingress is ours by its class; see `classes`."""
        return lookups.derive(CLASS_IS_OURS, ClassQuestion(lookups.cluster, class_name(manifest), self._classes))

    def refuse(self, ref: ObjectRef, document: IngressDocument, error: Exception) -> Fragment:
        """Stand in for an Ingress that made us fail."""
        message = f"Headgate failed on this object ({type(error).__name__}); its log has the details"
        return Fragment(identify(ref, document.decode()), problems=(Problem(reason="InternalError", message=message),))
