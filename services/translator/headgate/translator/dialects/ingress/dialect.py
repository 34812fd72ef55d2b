"""The dialect's value: Ingress v1 and the versions before it."""

from collections.abc import Iterator
from typing import Any

from headgate.common.resources import INGRESS, JsonObject
from headgate.translator.annotations.vocabulary import NGINX, NGINX_OPTIONS, OURS, single
from headgate.translator.dialects.ingress.document import CLASS_ANNOTATION, LEGACY_STORED, STORED, class_name
from headgate.translator.dialects.ingress.fields import INGRESS_FIELDS
from headgate.translator.dialects.ingress.nginx.options import (
    identify_config_map,
    is_named,
    is_named_by,
    translate_config_map,
)
from headgate.translator.dialects.ingress.translate import translate_ingress
from headgate.translator.manifests.reading import as_list, as_object, as_text
from headgate.translator.objects.dialect import Dialect, TranslatedKind, translated_documents
from headgate.translator.objects.ownership import ByClass, ByRule
from headgate.translator.sources.certificates import SECRETS
from headgate.translator.sources.classes import INGRESS_CLASSES
from headgate.translator.sources.config_maps import CONFIG_MAPS
from headgate.translator.sources.namespaces import NAMESPACES
from headgate.translator.world.documents import Document
from headgate.translator.world.world import StoredKind


def _hosts(manifest: JsonObject) -> Iterator[str]:
    for rule in map(as_object, as_list(as_object(manifest.get("spec")).get("rules"))):
        if host := as_text(rule.get("host")):
            yield host


def _kind(stored: StoredKind[Document], yields_to: StoredKind[Document] | None = None) -> TranslatedKind[Any, Any]:
    return translated_documents(
        stored,
        translate_ingress,
        ownership=ByClass(class_name, by_namespace=True),
        fields=INGRESS_FIELDS,
        hosts=_hosts,
        yields_to=yields_to,
    )


INGRESSES = Dialect(
    name="ingress",
    kinds=(
        _kind(STORED),
        _kind(LEGACY_STORED, yields_to=STORED),  # servers of 1.14 to 1.21 serve one object in both API groups
        TranslatedKind(
            CONFIG_MAPS,
            decode=lambda config_map: config_map,
            identify=identify_config_map,
            translate=translate_config_map,
            ownership=ByRule(is_named),
            can_be_ours=is_named_by,
        ),
    ),
    reads=(INGRESS_CLASSES, SECRETS, CONFIG_MAPS, NAMESPACES),
    vocabularies=(OURS, NGINX, NGINX_OPTIONS, single(CLASS_ANNOTATION, INGRESS)),
)
