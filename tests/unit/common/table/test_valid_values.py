"""Values that are made of valid fields without looking at them are those that validation makes."""

from copy import copy
from typing import Any

import pytest

from headgate.common.table import Backend, Entry, PathMatch, PathType, Provenance, Rank, Route, VirtualHost
from headgate.common.table_image import encode_entry

FROM = Provenance(cluster="c", kind="Ingress", namespace="shop", name="web", rule="spec.rules[0]")
ROUTE: dict[str, Any] = {
    "rank": Rank(priority=3),
    "name": "c/shop/web prefix /",
    "path": PathMatch(type=PathType.PREFIX, value="/"),
    "backends": (Backend(upstream="c/shop/web:80"),),
    "provenance": FROM,
}
CASES: list[tuple[type[Entry], dict[str, Any]]] = [
    (Provenance, {"cluster": "c", "kind": "Ingress", "namespace": "shop", "name": "web"}),
    (Route, ROUTE),
    (Route, {**ROUTE, "websocket": False, "max_body": 7}),
    (VirtualHost, {"host": "a.example", "listeners": (), "routes": (Route(**ROUTE),), "tls": None, "unmatched": "404"}),
]


@pytest.mark.parametrize(("model", "fields"), CASES)
def test_such_a_value_is_the_validated_one(model: type[Entry], fields: dict[str, Any]) -> None:
    made, validated = model.of_valid(**fields), model(**fields)
    assert made == validated
    assert hash(made) == hash(validated)
    assert repr(made) == repr(validated)
    assert made.model_fields_set == validated.model_fields_set
    assert encode_entry(made) == encode_entry(validated)  # type: ignore[arg-type]
    assert model.model_validate_json(made.model_dump_json()) == validated


def test_a_copy_of_it_is_a_value_of_its_own() -> None:
    made = Provenance.of_valid(cluster="c", kind="Ingress", namespace="shop", name="web")
    changed = made.model_copy(update={"name": "other"})
    assert (made.name, changed.name, copy(made)) == ("web", "other", made)
    assert Provenance.of_valid(cluster="c", kind="Ingress", namespace="shop", name="web").rule == ""


def test_a_value_without_a_required_field_cannot_be_encoded() -> None:
    with pytest.raises(Exception, match="Undefined"):
        Provenance.of_valid(cluster="c", kind="Ingress", namespace="shop").model_dump_json()
