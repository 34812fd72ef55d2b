"""Values of the table as values: equal, hashed and copied by their fields."""

from unittest.mock import ANY

from headgate.common.table import Provenance
from headgate.common.table.base import Entry

WEB = Provenance(cluster="c", kind="Ingress", namespace="d", name="web")


class OtherKind(Entry):
    """The same fields as a `Provenance`."""

    cluster: str
    kind: str
    namespace: str
    name: str
    rule: str = ""


def test_values_of_the_same_fields_are_equal_and_have_one_hash() -> None:
    again = Provenance(cluster="c", kind="Ingress", namespace="d", name="web", rule="")
    assert again == WEB
    assert len({again, WEB}) == 1


def test_a_value_of_another_field_or_another_kind_differs() -> None:
    assert WEB.model_copy(update={"name": "api"}) != WEB
    assert OtherKind(cluster="c", kind="Ingress", namespace="d", name="web") != WEB
    assert WEB != "Ingress d/web"


def test_something_that_equals_everything_is_asked() -> None:
    assert WEB == ANY


def test_a_copy_is_of_its_own_and_remembers_what_was_written() -> None:
    copied = WEB.model_copy(update={"rule": "spec.rules[0]"})
    assert (copied.rule, WEB.rule) == ("spec.rules[0]", "")
    assert copied.model_fields_set == {"cluster", "kind", "namespace", "name", "rule"}
    assert WEB.model_fields_set == {"cluster", "kind", "namespace", "name"}
    assert WEB.model_copy() == WEB
