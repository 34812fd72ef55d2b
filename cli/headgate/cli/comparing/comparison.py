"""What is compared: manifests or a record, two gateways, and what was found."""

import asyncio
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from headgate.cli.comparing.answers import Difference, compare
from headgate.cli.comparing.requests import ProbeRequest, recorded, requests_for
from headgate.cli.offline.tables import translate_paths
from headgate.cli.terminal.errors import UsageMistake
from headgate.common.resources import INGRESS_CLASS, JsonObject
from headgate.translator.manifests.reading import as_object, as_text, metadata


class Comparison(NamedTuple):
    """What a comparison found."""

    sent: int
    found: list[Difference]
    left_out: list[str]
    """Names of routes for which no request could be made."""


def compare_gateways(paths: Sequence[Path], old: str, new: str, record: Path | None, host: str) -> Comparison:
    """Send requests for the routes of manifests, or those of a record, to two gateways.

    Raises:
        UsageMistake: there is nothing to send.
        SettingsError: the translator's variables cannot be used.
    """
    annotations: dict[str, tuple[str, ...]] = {}
    made: list[ProbeRequest] = []
    left_out: list[str] = []
    if paths:
        manifests = translate_paths(paths).manifests.values()
        made, left_out = requests_for(translate_paths(paths, _of_any_class(manifests)).entries)
        for manifest in manifests:
            meta = metadata(manifest)
            name = f"{manifest.get('kind')} {as_text(meta.get('namespace')) or 'default'}/{as_text(meta.get('name'))}"
            annotations[name] = tuple(sorted(as_object(meta.get("annotations"))))
    if record is not None:
        made, left_out = recorded(record.read_text(errors="replace").splitlines(), host), []
    if not made:
        raise UsageMistake("nothing to send: give manifests with routes, or --requests FILE")
    return Comparison(len(made), asyncio.run(compare(made, old, new, annotations)), left_out)


def _of_any_class(manifests: Iterable[JsonObject]) -> list[str]:
    """Return flags of the translator with which objects of all classes are ours: a rehearsal is about all of them."""
    classes, controllers = {"headgate"}, set()
    for manifest in manifests:
        spec = as_object(manifest.get("spec"))
        if manifest.get("kind") == INGRESS_CLASS.kind:
            controllers.add(as_text(spec.get("controller")))
        annotated = as_object(metadata(manifest).get("annotations")).get("kubernetes.io/ingress.class")
        classes |= {as_text(spec.get("ingressClassName")), as_text(annotated)}
    flags = ["--class-names", ",".join(sorted(filter(None, classes))), "--watch-without-class"]
    return [*flags, "--controller-names", ",".join(sorted(controllers))] if controllers else flags
