"""Host facts as look-ups: an Ingress is translated again when another one changes what it must know of their host."""

from collections.abc import Iterator
from typing import Final, NamedTuple

from headgate.common.resources import JsonObject
from headgate.translator.annotations.nginx.reading import nginx_annotations, read_nginx_annotations
from headgate.translator.dialects.ingress.document import LEGACY_STORED, STORED, class_name
from headgate.translator.dialects.ingress.nginx.hosts import (
    ALIASED_HOSTS,
    CONCERNS_HOSTS,
    PATTERN_HOSTS,
    SNIPPET_HOSTS,
    TLS_HOSTS,
    ClusterQuestion,
    aliases_of,
    server_snippet_of,
    tls_names,
)
from headgate.translator.dialects.ingress.nginx.inspection import forbidden_texts
from headgate.translator.dialects.ingress.nginx.options import options_of
from headgate.translator.manifests.reading import creation_time
from headgate.translator.objects.document import Document
from headgate.translator.sources.classes import CLASS_IS_OURS, ClassQuestion, find_class
from headgate.translator.world.graph import Level, Lookups, Rule
from headgate.translator.world.settings import TranslationSettings
from headgate.translator.world.world import Index

NGINX_CONTROLLER: Final = "k8s.io/ingress-nginx"
NGINX_CLASS: Final = "nginx"
_FAMILY: Final = "k8s.io/"


class HostQuestion(NamedTuple):
    """Something about a host of a cluster."""

    cluster: str
    host: str


class HostFacts(NamedTuple):
    """What all Ingresses together say of a host."""

    has_patterns: bool = False
    """Whether its paths are patterns."""
    aliases: tuple[str, ...] = ()
    """Further hosts that have its routes."""
    server_snippet: str = ""
    """Of the oldest Ingress that has one."""


def _members(lookups: Lookups, index: Index[Document], value: str) -> Iterator[JsonObject]:
    """Yield the Ingresses that are ours with a value of an index."""
    for stored in (STORED, LEGACY_STORED):
        for document in lookups.find(stored, index, value):
            manifest = document.decode()
            if lookups.derive(CLASS_IS_OURS, ClassQuestion(lookups.cluster, class_name(manifest))):
                yield manifest


def _concerns_hosts(lookups: Lookups, question: ClusterQuestion) -> bool:
    return any(lookups.find(stored, CONCERNS_HOSTS) for stored in (STORED, LEGACY_STORED))


def _served(lookups: Lookups, index: Index[Document], host: str) -> Iterator[JsonObject]:
    """Yield the members that are served: those are not whose annotations or texts drop them."""
    groups = options_of(lookups).groups
    for manifest in _members(lookups, index, host):
        if not read_nginx_annotations(nginx_annotations(manifest), groups).dropping and not forbidden_texts(manifest):
            yield manifest


def _host_facts(lookups: Lookups, question: HostQuestion) -> HostFacts:
    has_patterns = next(_served(lookups, PATTERN_HOSTS, question.host), None) is not None
    aliased = sorted(_served(lookups, ALIASED_HOSTS, question.host), key=creation_time)
    with_snippets = sorted(_members(lookups, SNIPPET_HOSTS, question.host), key=creation_time)
    return HostFacts(
        has_patterns,
        aliases_of(aliased[0]) if aliased else (),
        server_snippet_of(with_snippets[0]) if with_snippets else "",
    )


def _has_certificate(lookups: Lookups, question: HostQuestion) -> bool:
    names = tls_names(question.host)
    return any(next(_members(lookups, TLS_HOSTS, name), None) is not None for name in names)


def _is_nginx_class(lookups: Lookups, question: ClassQuestion) -> bool:
    settings, found = lookups.settings, find_class(lookups, question.name)
    if settings.class_by_name and question.name in settings.class_names:
        return True
    if found is not None:
        return found.controller == NGINX_CONTROLLER or _is_of_its_family(found.controller, settings)
    if question.name is None:
        return settings.watch_without_class and any(
            _is_of_its_family(one, settings) for one in settings.controller_names
        )
    return NGINX_CLASS in question.name


def _is_of_its_family(controller: str, settings: TranslationSettings) -> bool:
    """Whether an adopted controller is a further ingress-nginx of the cluster, such as `k8s.io/internal-ingress-nginx`.

    Those have names of their own by `--controller-class`.
    """
    return controller in settings.controller_names and controller.startswith(_FAMILY)


_ANY_FACTS: Rule[ClusterQuestion, bool] = Rule(
    "host facts", Level.CLUSTER, _concerns_hosts, lambda *_: False, is_memo=True
)
_HOST_FACTS: Rule[HostQuestion, HostFacts] = Rule(
    "facts of a host", Level.SHARED, _host_facts, lambda *_: HostFacts(), is_memo=True
)
_HAS_CERTIFICATE: Rule[HostQuestion, bool] = Rule(
    "certificate of a host", Level.SHARED, _has_certificate, lambda *_: False, is_memo=True
)
_IS_NGINX_CLASS: Rule[ClassQuestion, bool] = Rule(
    "class of ingress-nginx", Level.CLUSTER, _is_nginx_class, lambda *_: False, is_memo=True
)
_NO_FACTS: Final = HostFacts()


def facts_of(lookups: Lookups, host: str) -> HostFacts:
    """Return what all Ingresses say of a host. Where none says anything of hosts, no host is looked into."""
    if lookups.is_assumed or not lookups.derive(_ANY_FACTS, ClusterQuestion(lookups.cluster)):
        return _NO_FACTS
    return lookups.derive(_HOST_FACTS, HostQuestion(lookups.cluster, host))


def has_certificate(lookups: Lookups, host: str) -> bool:
    """Whether an Ingress has a certificate for a host, usable or not."""
    return not lookups.is_assumed and lookups.derive(_HAS_CERTIFICATE, HostQuestion(lookups.cluster, host))


def is_of_nginx_controller(lookups: Lookups, name: str | None) -> bool:
    """Whether a class is of the controller of ingress-nginx, which may still be there and write statuses."""
    found = None if lookups.is_assumed else find_class(lookups, name)
    return found is not None and found.controller == NGINX_CONTROLLER


def is_nginx_class(lookups: Lookups, name: str | None) -> bool:
    """Whether a class is one of ingress-nginx: by its controller or, where there is no such IngressClass, by name."""
    return not lookups.is_assumed and lookups.derive(_IS_NGINX_CLASS, ClassQuestion(lookups.cluster, name))
