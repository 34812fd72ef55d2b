"""What becomes of annotations, for audits: each vocabulary answers for the names with its prefix.

A dialect lists the vocabularies that it reads, so `headgate audit` knows no prefix by itself.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from headgate.common.resources import CONFIG_MAP, INGRESS, SERVICE, JsonObject, ResourceKind
from headgate.translator.annotations.annotation import PREFIX, AnnotationTable
from headgate.translator.annotations.nginx import NGINX_PREFIX, NGINX_TABLE, NginxAnnotation
from headgate.translator.annotations.nginx.options import OPTIONS
from headgate.translator.annotations.reading import nearest
from headgate.translator.annotations.traefik import TRAEFIK_PREFIX, TRAEFIK_TABLE, TraefikAnnotation, known_name
from headgate.translator.manifests.reading import as_object, metadata
from headgate.translator.manifests.verdicts import Verdict, plain


class AnnotationVerdict(NamedTuple):
    """What becomes of an annotation."""

    verdict: Verdict
    note: str = ""
    """How it is approximated, or why it is ignored."""
    lets_in: bool = False
    """Whether it keeps requests out where it comes from, and is ignored here."""


class Vocabulary(NamedTuple):
    """The annotations with one prefix."""

    prefix: str
    judge: Callable[[ResourceKind, str], AnnotationVerdict | None]
    """Says what becomes of an annotation on an object of a kind, by its name without the prefix; None if it is none of
    the vocabulary. What is wrong with its value is found by translation."""
    is_data: bool = False
    """The names are keys of a ConfigMap instead."""

    def written(self, manifest: JsonObject) -> Iterator[tuple[str, str]]:
        """Yield names of the vocabulary that an object has, with the path of the field where each stands."""
        where = as_object(manifest.get("data") if self.is_data else metadata(manifest).get("annotations"))
        for name in sorted(where):
            if name.startswith(self.prefix):
                yield name, f"data[{name}]" if self.is_data else f"metadata.annotations[{name}]"


HONOURED = AnnotationVerdict(Verdict.HONOURED)


def vocabulary_of(table: AnnotationTable, kinds: Mapping[str, str]) -> Vocabulary:
    """Return the vocabulary of a table.

    Args:
        table: of annotations.
        kinds: on which its annotations are read, each with its plural as people say it: `Ingress`, `Ingresses`.
    """

    def judge(kind: ResourceKind, name: str) -> AnnotationVerdict:
        if kind.kind not in kinds:
            return AnnotationVerdict(Verdict.IGNORED, f"read on {' and '.join(kinds.values())} only")
        row = table.rows.get(name)
        if row is not None and row.kinds and kind.kind not in row.kinds:
            where = " and ".join(kinds[each] for each in row.kinds)
            return AnnotationVerdict(Verdict.IGNORED, f"read on {where} only")
        if row is not None and row.approximation:
            return AnnotationVerdict(Verdict.APPROXIMATED, row.approximation)
        return HONOURED

    return Vocabulary(table.prefix, judge)


def single(annotation: str, *kinds: ResourceKind) -> Vocabulary:
    """Return the vocabulary of one annotation, by its full name, on some kinds."""
    names = {kind.resource for kind in kinds}
    return Vocabulary(annotation, lambda kind, rest: HONOURED if kind.resource in names and not rest else None)


def _judge_ours(kind: ResourceKind, name: str) -> AnnotationVerdict:
    if kind.resource in (INGRESS.resource, SERVICE.resource):
        return HONOURED
    return AnnotationVerdict(Verdict.IGNORED, "read on Ingresses and Services only")


def _judge_nginx(kind: ResourceKind, name: str) -> AnnotationVerdict:
    row = NGINX_TABLE.rows.get(name)
    if row is None:
        near = nearest(name, NGINX_TABLE.rows)
        hint = f"; the nearest is {NGINX_PREFIX}{near}" if near else ""
        return AnnotationVerdict(Verdict.IGNORED, f"there is no such annotation of ingress-nginx{hint}")
    assert isinstance(row, NginxAnnotation)
    if kind.kind != INGRESS.kind:
        return AnnotationVerdict(Verdict.IGNORED, "read on Ingresses only")
    return _verdict_of(row)


def _verdict_of(row: NginxAnnotation) -> AnnotationVerdict:
    if row.refused:
        outcome = "; requests are refused" if row.guards else ""
        return AnnotationVerdict(Verdict.REFUSED if row.guards else Verdict.IGNORED, plain(f"{row.refused}{outcome}"))
    if row.ignored:
        return AnnotationVerdict(Verdict.IGNORED, plain(row.ignored))
    if row.approximation:
        return AnnotationVerdict(Verdict.APPROXIMATED, plain(row.approximation))
    return HONOURED


def _judge_option(kind: ResourceKind, name: str) -> AnnotationVerdict | None:
    row = OPTIONS.rows.get(name)
    if kind.resource != CONFIG_MAP.resource or not isinstance(row, NginxAnnotation):
        return None
    return _verdict_of(row)


def _judge_traefik(kind: ResourceKind, name: str) -> AnnotationVerdict:
    row = TRAEFIK_TABLE.rows.get(known_name(name))
    if row is None:
        near = nearest(name, TRAEFIK_TABLE.rows)
        hint = f"; the nearest is {TRAEFIK_PREFIX}{near}" if near else ""
        return AnnotationVerdict(Verdict.IGNORED, f"there is no such annotation of Traefik{hint}")
    assert isinstance(row, TraefikAnnotation)
    if kind.kind not in row.kinds:
        return AnnotationVerdict(Verdict.IGNORED, f"read on objects of kind {row.kinds[0]} only")
    return AnnotationVerdict(Verdict.IGNORED, plain(row.ignored)) if row.ignored else HONOURED


TRAEFIK_ANNOTATIONS = Vocabulary(TRAEFIK_PREFIX, _judge_traefik)
NGINX_OPTIONS = Vocabulary("", _judge_option, is_data=True)
OURS = Vocabulary(PREFIX, _judge_ours)
NGINX = Vocabulary(NGINX_PREFIX, _judge_nginx)
