from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from headgate.common.problems import Problem
from headgate.translator.dialects.ingress.parse import parse_ingress
from headgate.translator.manifests.shapes import Shape, ShapeReader


class Leaf(Shape):
    name: str | None = None


class Tree(Shape):
    root_name: str | None = None
    leaves: tuple[Leaf | None, ...] | None = None


def reader(value: dict[str, Any]) -> tuple[ShapeReader, list[Problem]]:
    problems: list[Problem] = []
    return ShapeReader(value, "spec", problems), problems


def test_null_and_an_absent_field_are_the_same() -> None:
    one, problems = reader({"rootName": None, "leaves": [{"name": None}]})
    assert one.read(Tree) == Tree(leaves=(Leaf(),))
    assert one.is_clean
    assert not problems


def test_a_field_of_the_wrong_type_costs_no_other() -> None:
    one, problems = reader({"rootName": 5, "leaves": [{"name": "a"}, "b", {"name": []}]})
    assert one.read(Tree) == Tree(leaves=(Leaf(name="a"), None, Leaf()))
    assert not one.is_clean
    assert not problems  # noted by who needs the field
    assert [field for field in ("spec.rootName", "spec.leaves[1]", "spec.leaves[2].name") if one.is_wrong(field)]
    assert not one.is_wrong("spec.leaves[0].name")


def test_a_wrong_type_is_noted_with_what_stands_there() -> None:
    one, problems = reader({"leaves": [{"name": [5]}]})
    one.read(Tree)
    assert one.refuse_wrong("spec.leaves[0].name", "a string")
    assert not one.refuse_wrong("spec.rootName", "a string")
    expected = Problem(
        reason="WrongType", field="spec.leaves[0].name", value="[5]", message="must be a string, but is a list"
    )
    assert problems == [expected]


@pytest.mark.parametrize("value", [{"rootname": "a"}, {"leaves": [{"Name": "a"}]}])
def test_a_field_that_no_model_has_is_left_out(value: dict[str, Any]) -> None:
    one, _ = reader(value)
    assert one.read(Tree).model_dump(exclude_none=True) in ({}, {"leaves": ({},)})
    assert not one.is_clean


def test_the_number_of_a_port_is_no_boolean() -> None:
    problems: list[Problem] = []
    backend = {"service": {"name": "web", "port": {"number": False}}}
    parse_ingress({"spec": {"defaultBackend": backend}}, problems)
    [problem] = problems
    assert problem.field == "spec.defaultBackend.service.port.number"
    assert problem.message == "must be a whole number from 1 to 65535, but is a boolean"


NAMES = st.sampled_from(
    ["rules", "tls", "host", "hosts", "http", "paths", "path", "pathType", "backend", "service", "name"]
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES | st.text(max_size=3), inner, max_size=4),
    max_leaves=30,
)


@given(VALUES)
@example({"rules": [None]})
def test_whatever_stands_in_a_spec_is_read(spec: Any) -> None:
    problems: list[Problem] = []
    parsed = parse_ingress({"spec": spec}, problems)
    assert problems or parsed.default_backend or parsed.rules
