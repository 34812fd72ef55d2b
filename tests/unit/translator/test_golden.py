"""Translation by example: every `NAME.in.yaml` makes the table and the problems of `NAME.out.yaml`.

Regenerate with `HEADGATE_UPDATE_GOLDEN=1 pytest tests/unit/translator/test_golden.py` and read the diff.

An input is a stream of manifests. A document without `kind` holds settings for what follows: `cluster`, and
`classes` (`controller_names`, `class_names`, `watch_without_class`) and `boundaries` (`host_sharing`) for all of it.
Documents of kind Secret may say `certificate: {names, problem}` in place of real data.
"""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from fakes.translator.deltas import applied, tls_secret
from headgate.common.deltas import Delta
from headgate.common.table import (
    BackendGroup,
    Certificate,
    Consumer,
    Endpoint,
    Entry,
    Listener,
    Route,
    StreamRoute,
    Upstream,
    VirtualHost,
)
from headgate.translator.assembly.boundaries import Boundaries
from headgate.translator.composition import DIALECTS
from headgate.translator.offline import Offline, translate_all
from headgate.translator.translation import Translation
from headgate.translator.world.settings import TranslationSettings

FOLDER = Path(__file__).parent / "golden"
INPUTS = sorted(FOLDER.rglob("*.in.yaml"))
UPDATES = os.environ.get("HEADGATE_UPDATE_GOLDEN") == "1"


@pytest.mark.parametrize("path", INPUTS, ids=lambda path: str(path.relative_to(FOLDER)).removesuffix(".in.yaml"))
def test_translation_is_as_written_down(path: Path) -> None:
    documents = [document for document in yaml.safe_load_all(path.read_text()) if document]
    settings = next((each["classes"] for each in documents if "classes" in each), {})
    found = yaml.safe_dump(
        describe(translate_all(read(documents), classes(settings), boundaries(documents))),
        sort_keys=False,
        width=160,
        allow_unicode=True,
    )
    golden = path.with_name(path.name.replace(".in.", ".out."))
    if UPDATES:
        golden.write_text(found)
    assert found == golden.read_text()


@pytest.mark.parametrize("path", INPUTS, ids=lambda path: str(path.relative_to(FOLDER)).removesuffix(".in.yaml"))
def test_nothing_is_wrong_with_an_object_by_itself_that_its_translation_does_not_say(path: Path) -> None:
    """So objects that are translated without an error need not be judged by themselves."""
    documents = [document for document in yaml.safe_load_all(path.read_text()) if document]
    settings = next((each["classes"] for each in documents if "classes" in each), {})
    translation = Translation(DIALECTS, classes(settings), boundaries=boundaries(documents))
    objects = {delta.ref: delta.object for delta in read(documents)}
    for delta in read(documents):
        translation.apply(delta)
    for cluster in {ref.cluster for ref in objects}:
        translation.activate(cluster)
    for _ in translation.settle():
        pass
    for ref, manifest in objects.items():
        versions = translation.world.tracker.get(ref)
        inspected = translation.world.inspect(ref, manifest or {})
        if versions is not None and inspected is not None:
            assert versions.errors == inspected.judged.errors


def test_every_output_has_an_input() -> None:
    assert {path.name.replace(".out.", ".in.") for path in FOLDER.rglob("*.out.yaml")} == {path.name for path in INPUTS}


def classes(written: dict[str, Any]) -> TranslationSettings:
    sets = {key: frozenset(value) for key, value in written.items() if isinstance(value, list)}
    return TranslationSettings(**{**written, **sets})


def boundaries(documents: list[Any]) -> Boundaries:
    written = next((each["boundaries"] for each in documents if "boundaries" in each), {})
    return Boundaries(**{key: tuple(value) if isinstance(value, list) else value for key, value in written.items()})


def read(documents: list[Any]) -> Iterator[Delta]:
    cluster = "a"
    for document in documents:
        cluster = document.get("cluster", cluster) if "kind" not in document else cluster
        if document.get("kind") == "Secret" and "certificate" in document:
            facts, metadata = document["certificate"], document["metadata"]
            document = tls_secret(metadata["name"], *facts.get("names", ()), problem=facts.get("problem"))
        if "kind" in document:
            yield applied(document, cluster)


def describe(offline: Offline) -> dict[str, Any]:
    """Return the table in short, and the problems of each object."""
    objects = {
        f"{'service ' if ref.resource == 'services' else ''}{ref.cluster}/{ref.namespace}/{ref.name}": {
            "accepted": ref in offline.accepted,
            "problems": [
                {key: value for key, value in problem.model_dump(mode="json").items() if value not in (None, "")}
                for problem in problems
            ],
        }
        for ref, problems in offline.problems.items()
    }
    table = {
        "hosts": {
            each.key: list(map(_route, each.routes)) for each in offline.entries if isinstance(each, VirtualHost)
        },
        "upstreams": {each.key: _upstream(each) for each in offline.entries if isinstance(each, Upstream)},
        "certificates": {
            each.key: list(each.server_names) for each in offline.entries if isinstance(each, Certificate)
        },
    }
    rare = {
        "tls": {each.key: _plain(each.tls) for each in offline.entries if isinstance(each, VirtualHost) and each.tls},
        "streams": {each.key: _plain(each, "key") for each in offline.entries if isinstance(each, StreamRoute)},
        "listeners": {each.key: _plain(each, "key") for each in offline.entries if isinstance(each, Listener)},
        "groups": {each.key: _plain(each, "key") for each in offline.entries if isinstance(each, BackendGroup)},
        "consumers": {each.key: _plain(each, "key") for each in offline.entries if isinstance(each, Consumer)},
        "unmatched": {
            each.key: each.unmatched
            for each in offline.entries
            if isinstance(each, VirtualHost) and each.unmatched != "404"
        },
    }
    shown = table | {kind: entries for kind, entries in rare.items() if entries}
    return {kind: dict(sorted(entries.items())) for kind, entries in shown.items()} | {"objects": objects}


def _plain(value: Entry, *without: str) -> dict[str, Any]:
    return value.model_dump(mode="json", exclude_defaults=True, exclude={*without, "provenance"})


def _route(route: Route) -> str | dict[str, Any]:
    policies = _plain(route, "name", "path", "backends")
    return {_where(route): policies} if policies else _where(route)


def _where(route: Route) -> str:
    backends = ", ".join(backend.target for backend in route.backends)
    source = f"{route.provenance.cluster}/{route.provenance.namespace}/{route.provenance.name} {route.provenance.rule}"
    return f"{route.path.type} {route.path.value} -> {backends} by {source}"


def _upstream(upstream: Upstream) -> list[Any]:
    why = [f"unavailable: {upstream.unavailable}"] if upstream.unavailable else []
    settings = _plain(upstream, "key", "endpoints", "unavailable")
    return [*([settings] if settings else []), *why, *map(_endpoint, upstream.endpoints)]


def _endpoint(endpoint: Endpoint) -> str:
    said = [f"{endpoint.address}:{endpoint.port}"]
    said += [f"zone={endpoint.zone}"] if endpoint.zone else []
    said += [] if endpoint.ready else ["not-ready", "serving" if endpoint.serving else "not-serving"]
    said += ["terminating"] if endpoint.terminating else []
    return " ".join(said)
