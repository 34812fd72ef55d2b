"""Which endpoint a route's request goes to."""

from collections import Counter

from fakes.gateway.requests import PLAIN
from fakes.gateway.table import FakePools, compiled, endpoint, host, load, new_compiler, route, upstream
from headgate.common.table import Upstream
from headgate.common.table_image import TableImage
from headgate.gateway.balancing.compile import compile_upstream
from headgate.gateway.balancing.endpoints import EndpointDirectory
from headgate.gateway.model.connection import ConnectionSpec
from headgate.gateway.table.compiler import TableCompiler
from headgate.gateway.table.route import CompiledRoute

KEY = "c1/default/web:80"


def choices(item: Upstream, count: int) -> Counter[str]:
    balancer = compile_upstream(item, EndpointDirectory(FakePools()), offset=0)
    return Counter(str(balancer.choose((), PLAIN)) for _ in range(count))


def only_route(compiler: TableCompiler) -> CompiledRoute:
    assert compiler.table is not None
    found = compiler.table.match(b"foo.com", b"/", PLAIN)
    assert found is not None
    return found


def test_hundred_requests_over_ten_endpoints_reach_all_ten() -> None:
    item = upstream(KEY, *(endpoint(number) for number in range(1, 11)))
    assert set(choices(item, 100).values()) == {10}


def test_only_ready_endpoints_get_requests() -> None:
    draining = endpoint(2, ready=False, serving=True, terminating=True)
    assert set(choices(upstream(KEY, endpoint(1), draining, endpoint(3, ready=False, serving=False)), 10)) == {
        "10.0.0.1:80"
    }


def test_draining_endpoints_get_requests_if_none_is_ready() -> None:
    draining = endpoint(2, ready=False, serving=True, terminating=True)
    assert set(choices(upstream(KEY, draining, endpoint(3, ready=False, serving=False)), 10)) == {"10.0.0.2:80"}


def test_endpoint_weights_are_kept() -> None:
    item = upstream(KEY, endpoint(1, weight=3), endpoint(2, weight=1), endpoint(3, weight=0))
    assert choices(item, 40) == {"10.0.0.1:80": 30, "10.0.0.2:80": 10}


def test_a_tried_endpoint_is_not_chosen_again_while_there_is_another() -> None:
    chosen = only_route(compiled([host("foo.com", route("/", "prefix", KEY)), upstream(KEY, endpoint(1), endpoint(2))]))
    first = chosen.choose((), PLAIN)
    assert first is not None
    assert all(chosen.choose({first}, PLAIN) is not first for _ in range(5))


def test_the_only_endpoint_is_chosen_again() -> None:
    chosen = only_route(compiled([host("foo.com", route("/", "prefix", KEY)), upstream(KEY, endpoint(1))]))
    first = chosen.choose((), PLAIN)
    assert first is not None
    assert chosen.choose({first}, PLAIN) is first


def test_backends_share_requests_by_weight() -> None:
    split = route("/", "prefix", ("main", 9), ("canary", 1), ("off", 0))
    entries = [upstream("main", endpoint(1)), upstream("canary", endpoint(2)), upstream("off", endpoint(3))]
    chosen = only_route(compiled([host("foo.com", split), *entries]))
    assert Counter(str(chosen.choose((), PLAIN)) for _ in range(100)) == {"10.0.0.1:80": 90, "10.0.0.2:80": 10}


def test_share_of_a_backend_without_endpoints_is_refused_not_moved() -> None:
    split = route("/", "prefix", ("main", 1), ("gone", 1))
    chosen = only_route(compiled([host("foo.com", split), upstream("main", endpoint(1)), upstream("gone")]))
    assert sum(chosen.choose((), PLAIN) is None for _ in range(10)) == 5
    assert chosen.unavailable == "gone has no endpoints"


def test_unavailable_says_what_the_translator_said() -> None:
    item = upstream(KEY, unavailable="Service default/web not found")
    chosen = only_route(compiled([host("foo.com", route("/", "prefix", KEY)), item]))
    assert chosen.choose((), PLAIN) is None
    assert chosen.unavailable == "Service default/web not found"


def test_unavailable_counts_endpoints_that_are_not_ready() -> None:
    item = upstream(KEY, endpoint(1, ready=False), endpoint(2, ready=False))
    chosen = only_route(compiled([host("foo.com", route("/", "prefix", KEY)), item]))
    assert chosen.choose((), PLAIN) is None
    assert chosen.unavailable == f"none of the 2 endpoints of {KEY} is ready"


def test_upstream_that_the_table_lacks_is_named() -> None:
    chosen = only_route(compiled([host("foo.com", route("/", "prefix", KEY))]))
    assert chosen.choose((), PLAIN) is None
    assert chosen.unavailable == f"{KEY} is not in the table"


def test_pools_are_made_on_first_use_and_carry_names() -> None:
    pools = FakePools()
    compiler = new_compiler(pools)
    by_name = endpoint(1).model_copy(update={"address": "backend.example.com"})
    load(compiler, TableImage([host("foo.com", route("/", "prefix", KEY)), upstream(KEY, by_name)]))
    assert not pools.pools
    only_route(compiler).choose((), PLAIN)
    assert list(pools.pools) == [("backend.example.com", 80, ConnectionSpec())]


def test_endpoints_of_two_upstreams_share_one_pool() -> None:
    entries = [
        host("foo.com", route("/", "prefix", "by-name")),
        host("*", route("/", "prefix", "by-number")),
        upstream("by-name", endpoint(1)),
        upstream("by-number", endpoint(1)),
    ]
    compiler = compiled(entries)
    assert compiler.table is not None
    first, second = compiler.table.match(b"foo.com", b"/", PLAIN), compiler.table.match(b"bar.com", b"/", PLAIN)
    assert first is not None
    assert second is not None
    assert first.choose((), PLAIN) is second.choose((), PLAIN)


def test_ready_endpoints_without_weight_are_named_as_the_reason() -> None:
    chosen = only_route(compiled([host("foo.com", route("/", "prefix", KEY)), upstream(KEY, endpoint(1, weight=0))]))
    assert chosen.choose((), PLAIN) is None
    assert chosen.unavailable == f"all ready endpoints of {KEY} have weight 0"


def test_a_route_whose_backends_have_no_weight_is_unavailable() -> None:
    split = route("/", "prefix", ("a", 0), ("b", 0))
    chosen = only_route(compiled([host("foo.com", split), upstream("a", endpoint(1)), upstream("b", endpoint(2))]))
    assert chosen.choose((), PLAIN) is None
    assert chosen.unavailable == "all backends of foo.com|prefix / have weight 0"
