"""What counts as taken, and that nothing is taken from routes that were there before."""

from hypothesis import given, settings
from hypothesis import strategies as st

from headgate.common.table import PathMatch, PathType, Provenance, Rank, Route
from headgate.gateway.proxy.heads.paths import plain_escapes as plain_escapes_of_gateways
from headgate.gateway.table.match import PathRule, compile_rule
from headgate.translator.assembly.taken_paths import MAX_PATTERNS, TakenPaths, plain_escapes

EXACT, PREFIX, TEXT, REGEX = PathType.EXACT, PathType.PREFIX, PathType.STRING_PREFIX, PathType.REGEX
VALUES = ("/", "/a", "/a/", "/a/b", "/ab", "/A", "/%61", "/a/b/c", "/b")
PATTERNS = (
    "/b(/|$)(.*)",
    "/a/b(/|$).*",
    "/ab$",
    "/.*",
    "/a.*",
    "/a(/|$)(.*)",
    "/a/b",
    "/b|/a",
    "/[ab]/?",
    "",
    "/ab?",
    "/a/b/.*",
)
REQUESTS = ("/", "/a", "/a/", "/a/b", "/a/b/c", "/a/b/c/d", "/ab", "/abc", "/A", "/A/b", "/b", "/b/x", "/x")


def route(type_: PathType, value: str, priority: int = 0, *, ignore_case: bool = False) -> Route:
    path = PathMatch(type=type_, value=value, ignore_case=ignore_case)
    source = Provenance(cluster="a", kind="Ingress", namespace="n", name="i")
    return Route(name=f"{type_} {value} {priority}", path=path, rank=Rank(priority=priority), provenance=source)


plain = st.builds(
    route, st.sampled_from((EXACT, PREFIX, TEXT)), st.sampled_from(VALUES), st.sampled_from((0, 0, 5, -5))
)
patterns = st.builds(
    lambda value, priority, ignore_case: route(REGEX, value, priority, ignore_case=ignore_case),
    st.sampled_from(PATTERNS),
    st.sampled_from((0, 0, 5, -5)),
    st.booleans(),
)
routes = st.one_of(plain, patterns)


def taken(*several: Route) -> TakenPaths:
    found = TakenPaths()
    for one in several:
        found.add(one)
    return found


def winner(rules: list[PathRule], path: str) -> PathRule | None:
    taking = [rule for rule in rules if rule.takes(plain_escapes(path).encode())]
    return min(taking, key=lambda rule: rule.precedence, default=None)


def is_longer(guest: PathRule, owner: PathRule) -> bool:
    """Whether a path lies below a prefix, or a pattern's own text does: what guests may take."""
    if owner.type not in (PREFIX, TEXT):
        return False
    return guest.type is REGEX or len(guest.value.rstrip(b"/")) > len(owner.value.rstrip(b"/"))


@settings(max_examples=1500)
@given(st.lists(routes, min_size=1, max_size=4), st.lists(routes, min_size=1, max_size=4), st.sampled_from(REQUESTS))
def test_requests_stay_with_those_who_were_there_but_for_longer_paths(
    owners: list[Route], guests: list[Route], path: str
) -> None:
    index = taken(*owners)
    admitted = [guest for guest in guests if index.rival(guest) is None]
    before = [compile_rule(one, position + 10) for position, one in enumerate(owners)]
    beside = [compile_rule(one, position) for position, one in enumerate(admitted)]
    had, has = winner(before, path), winner([*before, *beside], path)
    assert had is None or has is had or (has is not None and is_longer(has, had))


@given(st.lists(plain, min_size=1, max_size=4), patterns, st.sampled_from(REQUESTS))
def test_a_pattern_takes_nothing_of_a_path_that_it_does_not_lie_below(
    owners: list[Route], guest: Route, path: str
) -> None:
    rule = compile_rule(guest)
    if taken(*owners).rival(guest) is not None or not rule.takes(path.encode()):
        return
    had = winner([compile_rule(one, 1) for one in owners], path)
    whole = (had.value if had else b"").rstrip(b"/")
    assert had is None or had.type is EXACT or (had.type in (PREFIX, TEXT) and len(whole) < len(path))


@given(st.text(alphabet="/%aA6127fF", max_size=12))
def test_escapes_mean_what_gateways_take_them_for(path: str) -> None:
    assert plain_escapes(path).encode() == plain_escapes_of_gateways(path.encode())


def test_a_path_by_elements_is_not_that_of_a_longer_name() -> None:
    assert taken(route(REGEX, "/shop-b(/|$)(.*)")).rival(route(REGEX, "/shop(/|$)(.*)")) is None
    assert taken(route(REGEX, "/shop(/|$)(.*)")).rival(route(REGEX, "/shop-b(/|$)(.*)")) is None
    assert taken(route(REGEX, "/shop(/|$)(.*)")).rival(route(EXACT, "/shop")) is not None
    assert taken(route(REGEX, "/shop(/|$)(.*)")).rival(route(REGEX, "/sho.*")) is not None


def test_nothing_is_taken_of_a_host_without_routes() -> None:
    assert taken().rival(route(REGEX, "/.*", 9)) is None


def test_many_patterns_with_one_beginning_count_as_taking_what_begins_so() -> None:
    several = [route(REGEX, f"/a/[0-9]{{{number}}}x") for number in range(1, MAX_PATTERNS + 2)]
    assert taken(*several).rival(route(EXACT, "/a/other")) is not None
    assert taken(*several[:MAX_PATTERNS]).rival(route(EXACT, "/a/other")) is None
