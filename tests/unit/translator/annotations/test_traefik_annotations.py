"""The table of Traefik's annotations: what is read, what audits say, and the page that is written from it."""

from pathlib import Path

import pytest

from headgate.common.resources import INGRESS, SERVICE
from headgate.translator.annotations.traefik import TRAEFIK_PREFIX, TRAEFIK_ROWS, read_traefik_annotations
from headgate.translator.annotations.traefik_page import write_page
from headgate.translator.annotations.vocabulary import TRAEFIK_ANNOTATIONS
from headgate.translator.manifests.verdicts import Verdict

PAGE = Path(__file__).parents[4] / "docs" / "traefik-annotations.md"


def test_the_page_is_as_the_table_says() -> None:
    told = "python -m headgate.translator.annotations.traefik_page > docs/traefik-annotations.md"
    assert PAGE.read_text() == write_page(), told


@pytest.mark.parametrize("row", TRAEFIK_ROWS, ids=lambda row: row.name)
def test_every_example_can_be_read_on_its_kind(row) -> None:
    reading = read_traefik_annotations(row.kinds[0], {TRAEFIK_PREFIX + row.name: row.example})
    assert reading.problems == []


@pytest.mark.parametrize(
    ("kind", "name", "verdict"),
    [
        (INGRESS, "router.entryPoints", Verdict.HONOURED),
        (INGRESS, "router.tls.domains.0.main", Verdict.HONOURED),
        (INGRESS, "router.entrypoint", Verdict.IGNORED),
        (INGRESS, "service.nativelb", Verdict.IGNORED),
        (SERVICE, "service.nativelb", Verdict.HONOURED),
    ],
)
def test_audits_say_what_becomes_of_an_annotation(kind, name, verdict) -> None:
    judged = TRAEFIK_ANNOTATIONS.judge(kind, name)
    assert judged is not None
    assert judged.verdict is verdict


@pytest.mark.parametrize("text", ["9223372036854774808", "ten", ""])
def test_a_priority_that_is_no_number_of_64_bits_is_ignored(text) -> None:
    reading = read_traefik_annotations("Ingress", {f"{TRAEFIK_PREFIX}router.priority": text})
    assert [problem.reason for problem in reading.problems] == ["InvalidAnnotation"]
