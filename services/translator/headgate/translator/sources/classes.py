"""Which Ingress objects are ours.

Order of the rules (Kubernetes "Ingress class", and what ingress-nginx made customary):

1. `spec.ingressClassName` names an IngressClass: ours if its `spec.controller` is;
2. else the annotation `kubernetes.io/ingress.class` names one, in the same way;
3. where no IngressClass of that name exists, or by the setting `class_by_name`: ours if the name is one of the
   configured class names;
4. neither is given: ours if the default class is ours, if the cluster has no IngressClass at all, or by the setting
   `watch_without_class`.

Of several default classes the newest counts, then the lower name, as in the API server's admission (kubernetes#110974).
"""

from collections.abc import Sequence
from typing import NamedTuple

from headgate.common.resources import INGRESS_CLASS, JsonObject
from headgate.translator.manifests.reading import as_object, as_text, creation_time, metadata
from headgate.translator.world.graph import Level, Lookups, Rule
from headgate.translator.world.settings import TranslationSettings
from headgate.translator.world.world import EVERY, StoredKind

DEFAULT_CLASS_ANNOTATION = "ingressclass.kubernetes.io/is-default-class"
PARAMETERS_NAMESPACE_ANNOTATION = "apisix.apache.org/parameters-namespace"


class IngressClass(NamedTuple):
    """What translation needs of an IngressClass."""

    name: str
    controller: str
    is_default: bool
    created_at: str
    parameters: "ClassParameters | None" = None


class ClassParameters(NamedTuple):
    """The object that a class refers to."""

    group: str
    kind: str
    namespace: str
    """`default` where none is written."""
    name: str


def read_ingress_class(manifest: JsonObject) -> IngressClass:
    """Strip an IngressClass."""
    meta = metadata(manifest)
    return IngressClass(
        name=as_text(meta.get("name")),
        controller=as_text(as_object(manifest.get("spec")).get("controller")),
        is_default=as_object(meta.get("annotations")).get(DEFAULT_CLASS_ANNOTATION) == "true",
        created_at=creation_time(manifest),
        parameters=_read_parameters(manifest),
    )


def _read_parameters(manifest: JsonObject) -> ClassParameters | None:
    """Return what a class refers to; releases of Kubernetes without `namespace` there had an annotation for it."""
    written = as_object(as_object(manifest.get("spec")).get("parameters"))
    if not written:
        return None
    annotated = as_text(as_object(metadata(manifest).get("annotations")).get(PARAMETERS_NAMESPACE_ANNOTATION))
    namespace = as_text(written.get("namespace")) or annotated or "default"
    return ClassParameters(
        as_text(written.get("apiGroup")), as_text(written.get("kind")), namespace, as_text(written.get("name"))
    )


INGRESS_CLASSES = StoredKind(INGRESS_CLASS, read_ingress_class, indexes=(EVERY,))


class ClassQuestion(NamedTuple):
    """Whether objects with this class, or without one, are ours."""

    cluster: str
    name: str | None
    is_referred_to: bool = False
    """Whether such objects are there for others to refer to. Without a class, and where none is the default, they are
    ours if any class is."""


def _decide(lookups: Lookups, question: ClassQuestion) -> bool:
    settings = lookups.settings
    if question.name is not None:
        found = lookups.get(INGRESS_CLASSES, "", question.name)
        return is_class_ours(question.name, () if found is None else (found,), settings)
    if settings.watch_without_class:
        return True
    classes = lookups.find(INGRESS_CLASSES, EVERY)
    if is_class_ours(None, classes, settings):
        return True
    is_undecided = _default_class(classes) is None and question.is_referred_to
    return is_undecided and any(settings.owns(one.controller) for one in classes)


def is_class_ours(name: str | None, classes: Sequence[IngressClass], settings: TranslationSettings) -> bool:
    """Whether objects with a class, or without one, are ours; `classes` are those of the cluster."""
    if name is not None:
        found = next((each for each in classes if each.name == name), None)
        if found is not None and settings.owns(found.controller):
            return True
        return (found is None or settings.class_by_name) and name in settings.class_names
    default = _default_class(tuple(classes))
    return settings.watch_without_class or not classes or (default is not None and settings.owns(default.controller))


def find_class(lookups: Lookups, name: str | None) -> IngressClass | None:
    """Return the IngressClass that a name means, or the default one without a name; None where there is none."""
    if name is not None:
        return lookups.get(INGRESS_CLASSES, "", name)
    return _default_class(lookups.find(INGRESS_CLASSES, EVERY))


def _default_class(classes: tuple[IngressClass, ...]) -> IngressClass | None:
    defaults = sorted((each for each in classes if each.is_default), key=lambda each: each.name)
    return max(defaults, key=lambda each: each.created_at, default=None)


def why_foreign(name: str | None, classes: Sequence[IngressClass], settings: TranslationSettings) -> str:
    """Say why Ingress objects with this class, or without one, are not ours, and what would make them ours."""
    if name is not None:
        found = next((each for each in classes if each.name == name), None)
        if found is None:
            ours = ", ".join(sorted(settings.class_names)) or "none"
            return (
                f"there is no IngressClass {name!r}, and the class names that count as ours are: {ours} (class_names)"
            )
        return f"its class {name!r} is of the controller {found.controller!r}; --controller-names adopts it"
    remedy = "set ingressClassName, or give --watch-without-class"
    default = _default_class(tuple(classes))
    if default is None:
        return f"no ingressClassName, and no IngressClass is the default; {remedy}"
    return f"no ingressClassName, and the default class {default.name!r} is of {default.controller!r}; {remedy}"


CLASS_IS_OURS: Rule[ClassQuestion, bool] = Rule("ingress class", Level.CLUSTER, _decide, lambda *_: False, is_memo=True)
