"""The rows of kinds: what they agree with, and the pages that list them."""

from pathlib import Path

import pytest

from headgate.common.resources import (
    ALL_KINDS,
    APISIX_KINDS,
    ENDPOINT_SLICE,
    ENDPOINTS,
    INGRESS,
    LEGACY_INGRESS,
    Kinds,
    OwnershipRule,
    ResourceKind,
    StatusShape,
)
from headgate.translator.composition import DIALECTS
from headgate.translator.objects.ownership import ByClass

DOCS = Path(__file__).parents[3] / "docs"
STATUS_FIELDS = {
    StatusShape.INGRESS: "`status.loadBalancer.ingress`",
    StatusShape.ACCEPTANCE: "| GatewayClass | `status.conditions`",
    StatusShape.CONDITIONS: "`status.conditions`",
    StatusShape.EXPORT: "| ServiceExport | `status.conditions`",
    StatusShape.PREFIXED_CONDITIONS: "`headgate.dev/Accepted`",
    StatusShape.ANCESTORS: "`status.ancestors`",
    StatusShape.GATEWAY_ANCESTORS: "`status.ancestors`",
    StatusShape.PARENTS: "`status.parents`",
    StatusShape.LISTENERS: "`status.listeners`",
}


def section(page: str, title: str) -> str:
    return (DOCS / page).read_text().partition(f"\n## {title}\n")[2].partition("\n## ")[0]


def test_each_kind_has_one_row() -> None:
    names = [(kind.group, kind.resource) for kind in ALL_KINDS]
    assert len(set(names)) == len(names)


def test_the_dialect_that_a_row_names_translates_the_kind_and_no_other_does() -> None:
    translated = {kind.stored.kind: dialect.name for dialect in DIALECTS for kind in dialect.kinds}
    assert translated == {kind: kind.dialect for kind in ALL_KINDS if kind.dialect}


def test_the_row_and_the_dialect_agree_on_whether_a_class_decides_whose_objects_are() -> None:
    translated = [kind for dialect in DIALECTS for kind in dialect.kinds]
    by_class = {kind.stored.kind for kind in translated if isinstance(kind.ownership, ByClass)}
    assert by_class == {row for row in ALL_KINDS if row.dialect and row.ownership is OwnershipRule.CLASS}


def test_a_kind_is_chosen_together_with_what_stands_in_for_it() -> None:
    assert (INGRESS, LEGACY_INGRESS) in ALL_KINDS.choices
    assert (ENDPOINT_SLICE, ENDPOINTS) in ALL_KINDS.choices


def test_a_row_is_found_by_plural_and_by_kind() -> None:
    assert ALL_KINDS.find("extensions", "ingresses") is LEGACY_INGRESS
    assert ALL_KINDS.named("networking.k8s.io", "Ingress") is INGRESS
    assert ALL_KINDS.find("", "ingresses") is None


def test_groups_that_are_about_routing_alone_are_known() -> None:
    assert ALL_KINDS.has_whole_group(APISIX_KINDS[0].group)
    assert not ALL_KINDS.has_whole_group(INGRESS.group)
    assert not Kinds([INGRESS]).has_whole_group(APISIX_KINDS[0].group)


@pytest.mark.parametrize("kind", ALL_KINDS.readable, ids=str)
def test_the_documentation_names_each_kind_that_is_watched_with_its_versions(kind: ResourceKind) -> None:
    watched = section("kubernetes.md", "What is watched")
    (row,) = [line for line in watched.splitlines() if line.startswith("|") and _names(line, kind)]
    assert [version for version in kind.versions if version not in row] == []


def _names(line: str, kind: ResourceKind) -> bool:
    named = kind if kind.stands_in_for is None else kind.stands_in_for
    return named.kind in line.split("|")[1].replace(",", " ").split() and kind.group in line


@pytest.mark.parametrize("kind", [kind for kind in ALL_KINDS if kind.dialect], ids=str)
def test_the_documentation_of_audits_names_each_kind_that_is_looked_at(kind: ResourceKind) -> None:
    assert kind.kind in section("audit.md", "What is looked at")


@pytest.mark.parametrize("shape", sorted({kind.status for kind in ALL_KINDS} - {StatusShape.NONE}, key=str))
def test_the_documentation_says_where_each_shape_of_status_is_written(shape: StatusShape) -> None:
    assert STATUS_FIELDS[shape] in section("status.md", "What is written to a cluster")
