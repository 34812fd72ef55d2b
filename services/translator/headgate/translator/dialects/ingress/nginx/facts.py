"""Host facts as look-ups: an Ingress is translated again when another one changes what it must know of their host."""

from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from headgate.common.resources import JsonObject
from headgate.common.status import CONTROLLER_NAME
from headgate.translator.annotations.nginx.reading import nginx_annotations, read_nginx_annotations
from headgate.translator.dialects.ingress.document import LEGACY_STORED, STORED, class_name
from headgate.translator.dialects.ingress.nginx.hosts import (
    ALIASED_HOSTS,
    CONCERNS_HOSTS,
    PATTERN_HOSTS,
    SNIPPET_HOSTS,
    aliases_of,
    server_snippet_of,
)
from headgate.translator.dialects.ingress.nginx.inspection import forbidden_texts
from headgate.translator.dialects.ingress.nginx.options import options_of
from headgate.translator.manifests.reading import as_object, creation_time
from headgate.translator.sources.classes import CLASS_IS_OURS, ClassQuestion, find_class
from headgate.translator.sources.namespaces import NamespaceQuestion, is_namespace_watched
from headgate.translator.world.documents import Document
from headgate.translator.world.graph import Level, Lookups, Rule
from headgate.translator.world.settings import TranslationSettings
from headgate.translator.world.world import Index

NGINX_CONTROLLER: Final = "k8s.io/ingress-nginx"
NGINX_CLASS: Final = "nginx"
_FAMILY: Final = "k8s.io/"
_STORED: Final = (STORED, LEGACY_STORED)


class HostQuestion(NamedTuple):
    """Something about a host as the Ingresses of a namespace have it."""

    cluster: str
    namespace: str
    host: str


class HostFacts(NamedTuple):
    """What the Ingresses of a namespace together say of a host."""

    has_patterns: bool = False
    """Whether its paths are patterns."""
    aliases: tuple[str, ...] = ()
    """Further hosts that have its routes."""
    server_snippet: str = ""
    """Of the oldest Ingress that has one."""


def _concerns_hosts(lookups: Lookups, question: NamespaceQuestion) -> bool:
    return any(lookups.find(stored, CONCERNS_HOSTS, namespace=question.namespace) for stored in _STORED)


def served_with(lookups: Lookups, index: Index[Document], question: HostQuestion) -> Iterator[JsonObject]:
    """Yield the Ingresses of ours with a host of an index, the oldest first, without those that are dropped."""
    if not is_namespace_watched(lookups, question.namespace):
        return
    groups = options_of(lookups).groups
    found = (lookups.find(stored, index, question.host, namespace=question.namespace) for stored in _STORED)
    for manifest in sorted((document.decode() for documents in found for document in documents), key=creation_time):
        is_ours = lookups.derive(CLASS_IS_OURS, ClassQuestion(lookups.cluster, class_name(manifest)))
        if is_ours and not _is_dropped(manifest, groups) and not _is_left_out(manifest, lookups.settings):
            yield manifest


def _is_dropped(manifest: JsonObject, groups: Mapping[str, Mapping[str, Any]]) -> bool:
    """Whether annotations or texts of an Ingress have nothing of it served."""
    read = read_nginx_annotations(nginx_annotations(manifest), groups)
    return bool(read.dropping) or bool(forbidden_texts(manifest))


def _is_left_out(manifest: JsonObject, settings: TranslationSettings) -> bool:
    """Whether a default backend has nothing of an Ingress served."""
    spec = as_object(manifest.get("spec"))
    return settings.nginx.disable_catch_all and any(
        spec.get(name) is not None for name in ("defaultBackend", "backend")
    )


def _host_facts(lookups: Lookups, question: HostQuestion) -> HostFacts:
    aliased = next(served_with(lookups, ALIASED_HOSTS, question), None)
    with_snippet = next(served_with(lookups, SNIPPET_HOSTS, question), None)
    return HostFacts(
        has_patterns=next(served_with(lookups, PATTERN_HOSTS, question), None) is not None,
        aliases=aliases_of(aliased) if aliased is not None else (),
        server_snippet=server_snippet_of(with_snippet) if with_snippet is not None else "",
    )


def _is_nginx_class(lookups: Lookups, question: ClassQuestion) -> bool:
    settings, found = lookups.settings, find_class(lookups, question.name)
    is_ours = found is not None and found.controller == CONTROLLER_NAME
    if settings.class_by_name and question.name in settings.class_names and not is_ours:
        return True
    if found is not None:
        return found.controller == NGINX_CONTROLLER or _is_of_its_family(found.controller, settings)
    if question.name is None:
        return settings.watch_without_class and any(
            _is_of_its_family(one, settings) for one in settings.controller_names
        )
    return NGINX_CLASS in question.name


def _is_adopted(lookups: Lookups, question: ClassQuestion) -> bool:
    found = find_class(lookups, question.name)
    return found is not None and _is_of_its_family(found.controller, lookups.settings)


def _is_of_its_family(controller: str, settings: TranslationSettings) -> bool:
    """Whether an adopted controller is a further ingress-nginx of the cluster, such as `k8s.io/internal-ingress-nginx`.

    Those have names of their own by `--controller-class`.
    """
    return controller in settings.controller_names and controller.startswith(_FAMILY)


_ANY_FACTS: Rule[NamespaceQuestion, bool] = Rule(
    "host facts", Level.CLUSTER, _concerns_hosts, lambda *_: False, is_memo=True
)
_HOST_FACTS: Rule[HostQuestion, HostFacts] = Rule(
    "facts of a host", Level.SHARED, _host_facts, lambda *_: HostFacts(), is_memo=True
)
_IS_NGINX_CLASS: Rule[ClassQuestion, bool] = Rule(
    "class of ingress-nginx", Level.CLUSTER, _is_nginx_class, lambda *_: False, is_memo=True
)
_IS_ADOPTED: Rule[ClassQuestion, bool] = Rule(
    "adopted class", Level.CLUSTER, _is_adopted, lambda *_: False, is_memo=True
)
_NO_FACTS: Final = HostFacts()


def concerns_hosts(lookups: Lookups, namespace: str) -> bool:
    """Whether an Ingress of a namespace says anything of hosts that others have to know."""
    return not lookups.is_assumed and lookups.derive(_ANY_FACTS, NamespaceQuestion(lookups.cluster, namespace))


def facts_of(lookups: Lookups, namespace: str, host: str) -> HostFacts:
    """Return what the Ingresses of a namespace say of a host; it is not looked up where none says anything of hosts."""
    if not concerns_hosts(lookups, namespace):
        return _NO_FACTS
    return lookups.derive(_HOST_FACTS, HostQuestion(lookups.cluster, namespace, host))


def is_of_nginx_controller(lookups: Lookups, name: str | None) -> bool:
    """Whether a class is of an adopted controller of ingress-nginx, which may still be there and write statuses."""
    settings = lookups.settings
    if lookups.is_assumed or not any(_is_of_its_family(one, settings) for one in settings.controller_names):
        return False
    return lookups.derive(_IS_ADOPTED, ClassQuestion(lookups.cluster, name))


def is_nginx_class(lookups: Lookups, name: str | None) -> bool:
    """Whether a class is one of ingress-nginx: by its controller or, where there is no such IngressClass, by name."""
    return not lookups.is_assumed and lookups.derive(_IS_NGINX_CLASS, ClassQuestion(lookups.cluster, name))
