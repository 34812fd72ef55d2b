"""What a table says of groups of backends, and which of them cannot be served."""

from typing import Any

import pytest

from headgate.common.table import (
    Backend,
    BackendGroup,
    Choice,
    Failover,
    FirstMatch,
    Mirror,
    Mirroring,
    Provenance,
    Route,
    Stickiness,
    Timeouts,
)
from headgate.common.table.backend_group import MAX_BACKENDS, MAX_DEPTH, Nested, fault_of_nesting, nested_in
from headgate.common.table_image import encode_entry

FROM = Provenance(cluster="c", kind="TraefikService", namespace="d", name="n")


def fault(key: str, **groups: tuple[list[str], int]) -> str:
    """The fault of a group, of groups each with the groups and the number of upstreams in it."""
    return fault_of_nesting(key, lambda name: Nested(*groups[name]) if name in groups else None)


def chain(length: int) -> dict[str, tuple[list[str], int]]:
    made: dict[str, tuple[list[str], int]] = {f"g{number}": ([f"g{number + 1}"], 0) for number in range(1, length)}
    return made | {f"g{length}": ([], 1)}


def test_groups_within_groups_are_well() -> None:
    assert fault("a", a=(["b", "b"], 1), b=(["c"], 3), c=([], 2)) == ""


def test_a_group_that_is_not_in_the_table_is_no_fault_of_those_that_name_it() -> None:
    assert fault("a", a=(["gone"], 0)) == ""


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        ("a", "nests itself: a -> b -> c -> a"),
        ("b", "nests itself: b -> c -> a -> b"),
        ("outside", ""),
        ("self", "nests itself: self -> self"),
    ],
)
def test_a_circle_is_the_fault_of_the_groups_on_it(key: str, expected: str) -> None:
    circle: dict[str, Any] = {"a": (["b"], 0), "b": (["c"], 0), "c": (["a"], 0)}
    assert fault(key, outside=(["a"], 1), self=(["self"], 0), **circle) == expected


def test_depth_is_bounded() -> None:
    deep = chain(MAX_DEPTH + 1)
    assert fault("g2", **deep) == ""
    assert fault("g1", **deep) == "is nested deeper than 16 groups"
    assert fault("top", top=(["g1"], 1), **deep) == ""


@pytest.mark.parametrize("more", [0, 1])
def test_backends_are_counted_once_for_each_way(more: int) -> None:
    wide = {"a": (["b"] * 2, more), "b": ([], MAX_BACKENDS // 2)}
    assert fault("a", **wide) == ("has more than 1024 backends, with those of the groups within it" if more else "")
    assert bool(fault("top", top=(["a"], 1), **wide)) is not bool(more)


def test_very_long_chains_are_refused_without_walking_them() -> None:
    seen = []

    def find(key: str) -> Nested:
        seen.append(key)
        return Nested([f"{int(key) + 1}"], 0)

    assert fault_of_nesting("0", find).startswith("has more than")
    assert len(seen) < 2 * MAX_BACKENDS


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"weighted": {"backends": []}},
        {"weighted": {"backends": [{"upstream": "a"}]}, "hashed": {"backends": [{"upstream": "a"}]}},
    ],
)
def test_a_group_has_one_way_to_choose(fields: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="weighted"):
        BackendGroup.model_validate({"key": "g", "provenance": FROM, **fields})


@pytest.mark.parametrize("fields", [{}, {"upstream": "a", "group": "b"}])
def test_a_backend_has_one_target(fields: dict[str, str]) -> None:
    with pytest.raises(ValueError, match="either upstream or group"):
        Backend(**fields)


def test_backends_of_a_group_are_named_with_the_main_one_first() -> None:
    main, other = Backend(upstream="a"), Backend(group="b")
    failover = BackendGroup(key="g", failover=Failover(main=main, fallback=other), provenance=FROM)
    assert (failover.backends, nested_in(failover)) == ((main, other), Nested(["b"], 1))
    mirroring = Mirroring(main=main, mirrors=(Mirror(upstream="s"),))
    assert BackendGroup(key="g", mirroring=mirroring, provenance=FROM).backends == (main,)


@pytest.mark.parametrize(
    ("backend", "is_plain"),
    [
        (Backend(upstream="a", weight=5), True),
        (Backend(group="a"), False),
        (Backend(upstream="a", mirrors=(Mirror(upstream="s"),)), False),
        (Backend(upstream="a", timeouts=Timeouts(read_s=1)), False),
    ],
)
def test_a_plain_backend_is_an_upstream_alone(backend: Backend, is_plain: bool) -> None:
    assert backend.is_plain is is_plain


def test_backends_of_schema_6_are_read_and_written_alike() -> None:
    written = b'{"upstream":"c/d/web:80","weight":3}'
    assert encode_entry(Backend.model_validate_json(written)) == written  # type: ignore[arg-type]
    assert Route.model_fields["backends"].default == ()


def test_a_group_that_goes_by_rules_has_no_stickiness() -> None:
    choices = (Choice(backend=Backend(upstream="a")), Choice(backend=Backend(group="b")))
    group = BackendGroup(key="g", first_match=FirstMatch(choices=choices), provenance=FROM)
    assert nested_in(group) == Nested(["b"], 1)
    with pytest.raises(ValueError, match="no stickiness"):
        BackendGroup(key="g", first_match=group.first_match, provenance=FROM, stickiness=Stickiness(cookie="c"))
