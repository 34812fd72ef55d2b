"""What becomes of everything that an object says, for `headgate audit`.

Derived from what translation says of the object by itself (`World.inspect`) and from the tables that dialects keep of
fields and annotations. Whether what it refers to is there, and whose class it is, is not asked: a move may begin with a
folder of Ingresses alone.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from headgate.common.problems import LETS_IN, Problem, Severity
from headgate.common.resources import INGRESS, SERVICE, JsonObject, ObjectRef, ResourceKind
from headgate.common.resources.references import NGINX_PREFIX
from headgate.translator.annotations.vocabulary import Vocabulary
from headgate.translator.composition import DIALECTS
from headgate.translator.manifests.reading import as_object, as_text, metadata
from headgate.translator.manifests.verdicts import FieldVerdict, Verdict, plain
from headgate.translator.objects.dialect import Dialect, TranslatedKind
from headgate.translator.objects.nginx_prefix import as_known, as_written
from headgate.translator.translation import Translation
from headgate.translator.world.containment import contain
from headgate.translator.world.settings import DEFAULT_SETTINGS, TranslationSettings
from headgate.translator.world.world import KindKey, World

_SPEAKS_OF_ROWS_ONLY = frozenset((INGRESS.resource, SERVICE.resource))
"""Resources of Kubernetes' own: what is plain in them is not worth a line."""
_SERVED_OTHERWISE = frozenset(("CertificateMismatch", "DuplicateName", "DuplicatePath"))
"""Reasons of warnings about what is followed; what all others are about is ignored."""
_OF_SECRETS = frozenset(("CertificateNameMismatch",))
"""Reasons of warnings about Secrets, which are not looked at."""
_ORDER = [*Verdict]
_INDEX = re.compile(r"\[\d+\]")


class Said(NamedTuple):
    """Something that an object says, and what becomes of it."""

    name: str
    """The same for all objects that say it: an annotation, or a field such as `http[].plugins[cors]`."""
    field: str
    """Where it stands, as kubectl prints it; of several places the one that fares worst."""
    verdict: Verdict
    note: str = ""
    """How it is approximated, why it is ignored, what to do where it is refused."""
    lets_in: bool = False
    """Whether it keeps requests out where it comes from, and is ignored here."""


class _Place(NamedTuple):
    """A part of an object, before it is known what is wrong with it."""

    said: Said
    is_plain: bool = False
    """Whether it is worth a line only if something is wrong with it."""


class _Step(NamedTuple):
    """One step into an object."""

    exact: str
    general: str
    shown: str


class Audit:
    """Says what becomes of objects, one by one."""

    def __init__(
        self, settings: TranslationSettings = DEFAULT_SETTINGS, dialects: Sequence[Dialect] = DIALECTS
    ) -> None:
        """Take the settings, which name plugins of third parties, and the dialects."""
        self._settings = settings
        known = replace(settings, nginx=replace(settings.nginx, annotations_prefix=NGINX_PREFIX))
        self._world: World = Translation(dialects, known).world
        self._kinds = {kind.stored.name: kind for dialect in dialects for kind in dialect.kinds}
        vocabularies = (each for dialect in dialects for each in dialect.vocabularies)
        self._vocabularies = sorted(vocabularies, key=lambda each: -len(each.prefix))

    def look_at(self, ref: ObjectRef, manifest: JsonObject) -> tuple[Said, ...] | None:
        """Return what an object says, the worst first; None where it is of a kind that is not looked at."""
        translated = self._kinds.get(KindKey(ref.group, ref.resource))
        if translated is None or not translated.can_be_ours(ref, self._settings):
            return None
        prefix = self._settings.nginx.annotations_prefix
        said = self._look_at(translated, ref, as_known(manifest, prefix))
        return tuple(_as_written(one, prefix) for one in said)

    def _look_at(self, translated: TranslatedKind[Any, Any], ref: ObjectRef, manifest: JsonObject) -> tuple[Said, ...]:
        """Return what an object says whose annotations have the prefix that is known."""
        rows, kind = translated.fields, translated.stored.kind
        problems = contain(lambda: self._problems(ref, manifest), _failed, "audit of", ref)
        places = [
            *_annotations(self._vocabularies, kind, manifest),
            *_fields(rows, ref, manifest, [problem.field for problem in problems]),
        ]
        homes: dict[str, list[Problem]] = {}
        for problem in problems:
            homes.setdefault(_home(problem.field, (place.said.field for place in places)), []).append(problem)
        judged = (_judged(place, homes.get(place.said.field, ())) for place in places)
        said = [one for one in judged if one is not None]
        said += [
            Said(_general(problem.field), problem.field, _verdict(problem), problem.message)
            for problem in homes.get("", ())
        ]
        return tuple(sorted(_worst_of_each(said), key=lambda one: (-_ORDER.index(one.verdict), one.name)))

    def _problems(self, ref: ObjectRef, manifest: JsonObject) -> Sequence[Problem]:
        inspected = self._world.inspect(ref, manifest)
        found = inspected.problems if inspected is not None else ()
        return sorted(
            (
                problem
                for problem in found
                if problem.severity is not Severity.INFO and problem.reason not in _OF_SECRETS
            ),
            key=lambda problem: (problem.severity is not Severity.ERROR, problem.field, problem.message),
        )


def unread_kind(kind: str) -> Said:
    """Return what becomes of an object of a kind that is not read."""
    return Said(
        f"kind {kind}", "kind", Verdict.IGNORED, "objects of this kind are not read: nothing of it takes effect"
    )


def _as_written(said: Said, prefix: str) -> Said:
    name, field, note = (as_written(text, prefix) for text in (said.name, said.field, said.note))
    return said._replace(name=name, field=field, note=note)


def _failed(error: Exception) -> Sequence[Problem]:
    message = f"Headgate failed on this object ({type(error).__name__}); please report it"
    return (Problem(reason="InternalError", message=message),)


def _worst_of_each(said: Iterable[Said]) -> Iterable[Said]:
    worst: dict[str, Said] = {}
    for one in said:
        known = worst.get(one.name)
        if known is None or _ORDER.index(one.verdict) > _ORDER.index(known.verdict):
            worst[one.name] = one
    return worst.values()


def _judged(place: _Place, problems: Iterable[Problem]) -> Said | None:
    """Return what becomes of a place with what is wrong with it, errors first; None if it is plain."""
    said = place.said
    for problem in problems:
        verdict = _verdict(problem)
        if _ORDER.index(verdict) > _ORDER.index(said.verdict) or (verdict is said.verdict and not said.note):
            said = said._replace(
                verdict=verdict, note=problem.message, field=problem.field, lets_in=problem.reason == LETS_IN
            )
    return None if place.is_plain and said.verdict is Verdict.HONOURED else said


def _verdict(problem: Problem) -> Verdict:
    if problem.severity is Severity.ERROR:
        return Verdict.REFUSED
    return Verdict.APPROXIMATED if problem.reason in _SERVED_OTHERWISE else Verdict.IGNORED


def _home(field: str, places: Iterable[str]) -> str:
    """Return the narrowest place that a field is in; empty if it is in none."""
    around = (place for place in places if field.startswith(place) and field[len(place) :][:1] in ("", ".", "["))
    return max(around, key=len, default="")


def _general(field: str) -> str:
    return _INDEX.sub("[]", field.removeprefix("spec.")) or "(object)"


# Annotations


def _annotations(vocabularies: Iterable[Vocabulary], kind: ResourceKind, manifest: JsonObject) -> Iterator[_Place]:
    """Yield what is written in vocabularies; of several with one prefix the first that knows a name speaks."""
    told: set[str] = set()
    for vocabulary in vocabularies:
        for name, field in vocabulary.written(manifest):
            found = vocabulary.judge(kind, name.removeprefix(vocabulary.prefix)) if field not in told else None
            if found is not None:
                told.add(field)
                yield _Place(Said(name, field, found.verdict, found.note, found.lets_in))


# Fields


def _fields(
    rows: Sequence[FieldVerdict], ref: ObjectRef, manifest: JsonObject, wrong: Collection[str]
) -> Iterator[_Place]:
    annotations = as_object(metadata(manifest).get("annotations"))
    for steps, value in _leaves(manifest.get("spec"), ()):
        row, depth = _row_of(rows, steps, value, annotations)
        if row is None:
            depth = next((one for one in range(1, len(steps)) if _at(steps[:one]) in wrong), len(steps))
        name = ".".join(step.shown for step in steps[:depth]).removesuffix("[]")
        said = Said(name, _at(steps[:depth]), Verdict.HONOURED)
        if row is not None:
            name = f"{name}={row.value}" if row.value else name
            said = said._replace(name=name, verdict=row.likeness.verdict, note=_note(row))
        yield _Place(said, row is None and ref.resource in _SPEAKS_OF_ROWS_ONLY)


def _at(steps: Iterable[_Step]) -> str:
    return ".".join(("spec", *(step.exact for step in steps)))


def _note(row: FieldVerdict) -> str:
    return "" if row.likeness.verdict is Verdict.HONOURED else plain(row.note)


def _row_of(
    rows: Iterable[FieldVerdict], steps: Sequence[_Step], value: Any, annotations: JsonObject
) -> tuple[FieldVerdict | None, int]:
    """Return the row that says most exactly what becomes of a field, and how many steps it speaks of."""
    found: tuple[FieldVerdict | None, int] = (None, len(steps))
    best = (0, False)
    for row in rows:
        if (row.value and row.value != value) or any(name in annotations for name in row.unless):
            continue
        for field in row.fields:
            depth = field.count(".") + 1
            if _begins(steps, field.split(".")) and (depth, bool(row.value)) > best:
                found, best = (row, depth), (depth, bool(row.value))
    return found


def _begins(steps: Sequence[_Step], names: Sequence[str]) -> bool:
    if len(steps) < len(names):
        return False
    found = [step.general for step in steps[: len(names)]]
    *before, last = names
    return all(map(_names, before, found)) and (_names(last, found[-1]) or found[-1] == f"{last}[]")


def _names(name: str, step: str) -> bool:
    return name in (step, "*")


def _leaves(value: Any, steps: tuple[_Step, ...]) -> Iterator[tuple[tuple[_Step, ...], Any]]:
    """Yield all that stands in a value, with the way to it; elements of lists are a step together with the list."""
    if isinstance(value, dict) and value:
        for name, member in value.items():
            yield from _members(str(name), member, steps)
    elif steps and value is not None:
        yield steps, value


def _members(name: str, member: Any, steps: tuple[_Step, ...]) -> Iterator[tuple[tuple[_Step, ...], Any]]:
    if not isinstance(member, list):
        yield from _leaves(member, (*steps, _Step(name, name, name)))
        return
    for index, element in enumerate(member):
        plugin = as_text(as_object(element).get("name")) if name == "plugins" else None
        step = _Step(f"{name}[{index}]", f"{name}[]", f"{name}[{plugin or ''}]")
        yield from _leaves(element, (*steps, step))
