"""The lines of routes whose backends are groups."""

from fakes.gateway.table import ORIGIN, endpoint, host, route, upstream
from headgate.common.table import Backend, BackendGroup, TableEntry, Weighted
from headgate.operations.tables.routes import lines_of


def group(key: str, *backends: Backend) -> BackendGroup:
    return BackendGroup(key=key, weighted=Weighted(backends=backends), provenance=ORIGIN)


def lines(*entries: TableEntry) -> list[tuple[str, int, str]]:
    site = host("x", route("/").model_copy(update={"backends": (Backend(group="g"),)}))
    return [(line.backend, line.endpoints, line.unavailable) for line in lines_of([site, *entries])]


def test_a_group_has_the_endpoints_of_all_upstreams_that_it_leads_to() -> None:
    outer = group("g", Backend(upstream="a"), Backend(group="inner"))
    inner = group("inner", Backend(upstream="b"), Backend(upstream="a"), Backend(group="g"))
    found = lines(outer, inner, upstream("a", endpoint(1)), upstream("b", endpoint(2), endpoint(3)))
    assert found == [("group g", 3, "")]


def test_a_group_whose_upstreams_are_all_unavailable_says_why() -> None:
    both = group("g", Backend(upstream="a"), Backend(upstream="b"))
    assert lines(both, upstream("a", unavailable="no a"), upstream("b", unavailable="no b")) == [
        ("group g", 0, "no a; no b")
    ]


def test_a_group_that_is_gone_says_so() -> None:
    assert lines() == [("group g", 0, "not in the table")]
