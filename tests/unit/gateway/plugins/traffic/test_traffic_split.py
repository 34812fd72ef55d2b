from collections import Counter

import pytest

from headgate.gateway.plugins.interface import PluginServices
from headgate.gateway.plugins.interface.errors import PluginRefused
from unit.gateway.plugins.running import asked, chain, request


class Named:
    """Stands for an upstream."""

    unavailable = ""

    def __init__(self, key: str) -> None:
        self.key = key

    def choose(self, tried, source):
        return None


def split(*rules):
    return chain(("traffic-split", {"rules": list(rules)}), services=PluginServices(find_upstream=Named))


async def chosen(plugins, target="/", headers=()) -> str:
    given = request(target, headers)
    assert await asked(plugins, given) is None
    return "own" if given.endpoints is None else given.endpoints.key


def weighted(**weights: int):
    return [({} if key == "own" else {"upstream_id": key}) | {"weight": weight} for key, weight in weights.items()]


async def test_requests_are_shared_out_by_weight() -> None:
    plugins = split({"weighted_upstreams": weighted(a=3, own=2)})
    assert Counter([await chosen(plugins) for _ in range(10)]) == {"a": 6, "own": 4}


async def test_upstream_without_weight_gets_nothing() -> None:
    plugins = split({"weighted_upstreams": weighted(a=0, own=1)})
    assert {await chosen(plugins) for _ in range(5)} == {"own"}


async def test_first_rule_that_takes_a_request_chooses() -> None:
    first = {"match": [{"vars": [["http_x_api_id", "==", "1"]]}], "weighted_upstreams": weighted(a=1)}
    second = {"match": [{"vars": [["http_x_api_id", "in", ["1", "2"]]]}], "weighted_upstreams": weighted(b=1)}
    plugins = split(first, second)
    assert [await chosen(plugins, headers=[("X-Api-Id", value)]) for value in "123"] == ["a", "b", "own"]


async def test_matches_are_alternatives_and_their_conditions_all_hold() -> None:
    match = [{"vars": [["arg_a", "==", "1"], ["arg_b", "==", "2"]]}, {"vars": [["arg_c", "==", "3"]]}]
    plugins = split({"match": match, "weighted_upstreams": weighted(x=1)})
    assert [await chosen(plugins, target) for target in ("/?a=1", "/?a=1&b=2", "/?c=3", "/")] == [
        "own",
        "x",
        "x",
        "own",
    ]


@pytest.mark.parametrize(
    ("rule", "told"),
    [
        ({"weighted_upstreams": [{"upstream_id": "a", "weight": -1}]}, r"rules\.0\.weighted_upstreams\.0\.weight"),
        ({"weighted_upstreams": [{"weight": 0}]}, "all weights are 0"),
        ({"match": [{"vars": [["a", "=", "b"]]}]}, "there is no operator '='"),
        ({"weighted_upstreams": []}, "at least 1 item"),
    ],
)
def test_bad_rule_is_refused(rule, told) -> None:
    with pytest.raises(PluginRefused, match=told):
        split(rule)
