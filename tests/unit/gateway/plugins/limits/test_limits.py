import asyncio

import pytest

from fakes.virtual_time import in_virtual_time
from headgate.gateway.plugins.interface import PluginServices, Response
from headgate.gateway.plugins.interface.errors import PluginRefused
from headgate.gateway.plugins.kit.keyed import Keyed
from unit.gateway.plugins.running import Clock, asked, chain, exchanged, request


@pytest.fixture
def clock() -> Clock:
    return Clock()


def limited(name: str, config, clock: Clock, **given):
    return chain((name, config), services=PluginServices(clock=clock, **given))


async def statuses(plugins, count: int, **given) -> list[int]:
    return [(await exchanged(plugins, request(**given))).status for _ in range(count)]


async def test_count_holds_for_a_window_and_begins_anew(clock) -> None:
    plugins = limited("limit-count", {"count": 2, "time_window": 60}, clock)
    assert await statuses(plugins, 3) == [200, 200, 503]
    clock.now += 59.9
    assert await statuses(plugins, 1) == [503]
    clock.now += 0.1
    assert await statuses(plugins, 1) == [200]


async def test_answers_tell_what_is_left_of_the_count(clock) -> None:
    plugins = limited("limit-count", {"count": 2, "time_window": 60, "rejected_code": 429}, clock)
    await exchanged(plugins, request())
    clock.now += 10
    second = await exchanged(plugins, request())
    third = await exchanged(plugins, request())
    names = ("X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset")
    assert [second.headers.get(name) for name in names] == ["2", "0", "50"]
    assert [third.headers.get(name) for name in names] == ["2", "0", "50"]
    assert third.status == 429


@pytest.mark.parametrize("now", [10.00033, 123.456, 1541.1])
async def test_a_window_that_begins_is_told_as_long_as_it_is(clock, now: float) -> None:
    clock.now = now  # (10.00033 + 60) - 10.00033 is more than 60
    plugins = limited("limit-count", {"count": 2, "time_window": 60}, clock)
    assert (await exchanged(plugins, request())).headers.get("X-RateLimit-Reset") == "60"


async def test_headers_may_be_left_out(clock) -> None:
    config = {"count": 2, "time_window": 60, "show_limit_quota_header": False}
    response = await exchanged(limited("limit-count", config, clock), request())
    assert "X-RateLimit-Limit" not in response.headers


async def test_headers_may_have_other_names(clock) -> None:
    names = {"limit_header": "X-A%d", "remaining_header": "X-B", "reset_header": "X-C"}
    response = await exchanged(limited("limit-count", {"count": 2, "time_window": 60, **names}, clock), request())
    assert [response.headers.get(name) for name in names.values()] == ["2", "1", "60"]
    assert "X-RateLimit-Limit" not in response.headers


async def test_clients_count_apart(clock) -> None:
    plugins = limited("limit-count", {"count": 1, "time_window": 60}, clock)
    assert await statuses(plugins, 2, client="192.0.2.1") == [200, 503]
    assert await statuses(plugins, 1, client="192.0.2.2") == [200]


@pytest.mark.parametrize(
    ("key", "key_type", "same"),
    [
        ("http_x_key", "var", False),
        ("$host $http_x_key", "var_combination", False),
        ("all", "constant", True),
        ("http_absent", "var", True),
    ],
)
async def test_key_says_what_counts_together(clock, key, key_type, same) -> None:
    config = {"count": 1, "time_window": 60, "key": key, "key_type": key_type}
    plugins = limited("limit-count", config, clock)
    assert await statuses(plugins, 1, headers=[("X-Key", "a")]) == [200]
    assert await statuses(plugins, 1, headers=[("X-Key", "b")]) == [503 if same else 200]


async def test_all_rules_hold(clock) -> None:
    rules = [
        {"count": 2, "time_window": 1, "key": "$remote_addr"},
        {"count": 3, "time_window": 60, "key": "$remote_addr", "header_prefix": "Minute"},
    ]
    plugins = limited("limit-count", {"rules": rules}, clock)
    assert await statuses(plugins, 3) == [200, 200, 503]
    clock.now += 1
    response = await exchanged(plugins, request())
    assert response.status == 503
    assert response.headers.get("X-Minute-RateLimit-Remaining") == "0"


async def test_rule_whose_key_the_request_lacks_is_passed_over(clock) -> None:
    rules = [
        {"count": 1, "time_window": 60, "key": "$http_x_user"},
        {"count": 3, "time_window": 60, "key": "$remote_addr"},
    ]
    plugins = limited("limit-count", {"rules": rules}, clock)
    assert await statuses(plugins, 2, headers=[("X-User", "jack")]) == [200, 503]
    response = await exchanged(plugins, request())
    assert response.status == 200
    assert "X-1-RateLimit-Limit" not in response.headers
    assert response.headers.get("X-2-RateLimit-Limit") == "3"


async def test_numbers_may_be_those_of_the_request(clock) -> None:
    config = {"count": "${http_x_quota ?? 1}", "time_window": "$http_x_window"}
    plugins = limited("limit-count", config, clock)
    minute = ("X-Window", "60")
    assert await statuses(plugins, 3, headers=[minute, ("X-Quota", "2")]) == [200, 200, 503]
    assert await statuses(plugins, 2, headers=[minute]) == [200, 503]
    assert await statuses(plugins, 1) == [500]


async def test_number_that_is_none_lets_pass_if_told_so(clock) -> None:
    config = {"count": "$http_x_quota", "time_window": 60, "allow_degradation": True}
    for quota in ("many", "0", "-1", "inf", "nan", ""):
        assert await statuses(limited("limit-count", config, clock), 1, headers=[("X-Quota", quota)]) == [200]
        config_without = {**config, "allow_degradation": False}
        assert await statuses(limited("limit-count", config_without, clock), 1, headers=[("X-Quota", quota)]) == [500]


async def test_sliding_window_counts_the_one_before_by_its_share(clock) -> None:
    clock.now = 1000.0
    plugins = limited("limit-count", {"count": 4, "time_window": 10, "window_type": "sliding"}, clock)
    assert await statuses(plugins, 5) == [200, 200, 200, 200, 503]
    clock.now = 1010.0
    assert await statuses(plugins, 1) == [503]
    clock.now = 1015.0
    assert await statuses(plugins, 3) == [200, 200, 503]
    clock.now = 1035.0
    assert await statuses(plugins, 5) == [200, 200, 200, 200, 503]


async def test_sliding_window_tells_what_is_left(clock) -> None:
    clock.now = 1002.0
    plugins = limited("limit-count", {"count": 2, "time_window": 10, "window_type": "sliding"}, clock)
    response = await exchanged(plugins, request())
    names = ("X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset")
    assert [response.headers.get(name) for name in names] == ["2", "1", "8"]


async def test_counts_outlive_a_new_table(clock) -> None:
    services = PluginServices(clock=clock)
    config = {"count": 1, "time_window": 60}
    before = chain(("limit-count", config), services=services)
    await exchanged(before, request())
    after = chain(("limit-count", config), services=services)
    assert await statuses(after, 1) == [503]


async def test_counts_are_forgotten_with_their_last_route(clock) -> None:
    services, limit = PluginServices(clock=clock), ("limit-count", {"count": 1, "time_window": 60})
    await exchanged(chain(limit, services=services), request())
    assert await statuses(chain(limit, services=services), 2) == [200, 503]


async def test_routes_count_apart_unless_grouped(clock) -> None:
    services = PluginServices(clock=clock)
    for group, expected in ((None, 200), ("together", 503)):
        config = {"count": 1, "time_window": 60, "group": group}
        first = chain(("limit-count", config), services=services, scope="one")
        second = chain(("limit-count", config), services=services, scope="two")
        await exchanged(first, request())
        assert await statuses(second, 1) == [expected]


@pytest.mark.parametrize("name", ["limit-count", "limit-req", "limit-conn"])
async def test_listed_clients_are_not_limited(clock, name) -> None:
    limits = {
        "limit-count": {"count": 1, "time_window": 60},
        "limit-req": {"rate": 1, "burst": 0},
        "limit-conn": {"conn": 1},
    }
    plugins = limited(name, {**limits[name], "allowlist": ["192.0.2.0/24"]}, clock)
    assert await statuses(plugins, 3) == [200, 200, 200]
    assert await statuses(plugins, 2, client="198.51.100.1") == [200, 503]


async def test_refusal_says_what_it_is_told_to(clock) -> None:
    plugins = limited("limit-req", {"rate": 1, "burst": 0, "rejected_msg": "slow down"}, clock)
    await exchanged(plugins, request())
    response = await exchanged(plugins, request())
    assert response.body == b'{"error_msg": "slow down"}\n'


async def test_burst_without_delay_passes_and_drains_at_the_rate(clock) -> None:
    plugins = limited("limit-req", {"rate": 2, "burst": 3, "nodelay": True}, clock)
    assert await statuses(plugins, 6) == [200, 200, 200, 200, 503, 503]
    clock.now += 0.5
    assert await statuses(plugins, 2) == [200, 503]
    clock.now += 60
    assert await statuses(plugins, 5) == [200, 200, 200, 200, 503]


async def test_rate_below_one_is_one_in_several_seconds(clock) -> None:
    plugins = limited("limit-req", {"rate": 0.1, "burst": 0}, clock)
    assert await statuses(plugins, 2) == [200, 503]
    clock.now += 10
    assert await statuses(plugins, 1) == [200]


@in_virtual_time
async def test_requests_of_a_burst_wait_for_their_turn() -> None:
    loop = asyncio.get_running_loop()
    plugins = chain(("limit-req", {"rate": 2, "burst": 5}), services=PluginServices(clock=loop.time))
    began = loop.time()
    await asyncio.gather(*(asked(plugins, request()) for _ in range(4)))
    assert loop.time() - began == pytest.approx(1.5, abs=0.05)


async def test_requests_under_way_are_bounded_and_given_back(clock) -> None:
    plugins = limited("limit-conn", {"conn": 2}, clock)
    under_way = [request(), request()]
    for one in under_way:
        assert await asked(plugins, one) is None
    third = request()
    refused = await asked(plugins, third)
    assert refused is not None
    assert refused.status == 503
    plugins.on_finish(third, 503, 0)
    assert await asked(plugins, request()) is not None
    plugins.on_finish(under_way[0], 499, 0)
    assert await asked(plugins, request()) is None


async def test_several_bounds_of_requests_under_way_all_hold(clock) -> None:
    rules = [{"conn": 1, "key": "$http_x_user"}, {"conn": "$arg_n", "key": "$host"}]
    plugins = limited("limit-conn", {"rules": rules}, clock)
    jack, jill = [("X-User", "jack")], [("X-User", "jill")]
    first = request("/?n=2", jack)
    assert await asked(plugins, first) is None
    assert await asked(plugins, request("/?n=2", jack)) is not None
    assert await asked(plugins, request("/?n=2", jill)) is None
    assert await asked(plugins, request("/?n=2")) is not None
    plugins.on_finish(first, 200, 0)
    assert await asked(plugins, request("/?n=2", jack)) is None


@in_virtual_time
async def test_burst_of_requests_under_way_is_delayed() -> None:
    loop = asyncio.get_running_loop()
    plugins = chain(("limit-conn", {"conn": 1, "burst": 2, "default_conn_delay": 3}))
    began = loop.time()
    answers = await asyncio.gather(*(asked(plugins, request()) for _ in range(4)))
    assert [None if answer is None else answer.status for answer in answers] == [None, None, None, 503]
    assert loop.time() - began == pytest.approx(6, abs=0.05)


def test_number_of_keys_is_bounded() -> None:
    keyed: Keyed[int] = Keyed(2)
    keyed.put("a", 1)
    keyed.put("b", 2)
    keyed.get("a")
    keyed.put("c", 3)
    assert (keyed.get("a"), keyed.get("b"), keyed.get("c")) == (1, None, 3)


@pytest.mark.parametrize(
    "config",
    [{}, {"count": 1}, {"count": 1, "time_window": 0}, {"count": 1, "time_window": 1, "policy": "redis"}],
)
def test_bad_configuration_is_refused(config) -> None:
    with pytest.raises(PluginRefused):
        chain(("limit-count", config))


@pytest.mark.parametrize(
    ("config", "client", "status"),
    [
        ({"whitelist": ["192.0.2.0/24"]}, "192.0.2.9", 200),
        ({"whitelist": ["192.0.2.0/24"]}, "192.0.3.9", 403),
        ({"blacklist": ["192.0.2.1"]}, "192.0.2.1", 403),
        ({"blacklist": ["192.0.2.1"]}, "192.0.2.2", 200),
        ({"whitelist": ["192.0.2.0/24"], "blacklist": ["192.0.2.1"]}, "192.0.2.1", 403),
        ({"whitelist": ["192.0.2.0/24"]}, "::ffff:192.0.2.1", 200),
        ({"whitelist": ["2001:db8::/32"]}, "2001:db8::1%eth0", 200),
        ({"whitelist": ["0.0.0.0/0"]}, "2001:db8::1", 403),
        ({"whitelist": ["0.0.0.0/0"]}, "", 403),
        ({"blacklist": ["192.0.2.1"], "response_code": 404}, "192.0.2.1", 404),
    ],
)
async def test_clients_are_let_in_by_address(config, client, status) -> None:
    response: Response = await exchanged(chain(("ip-restriction", config)), request(client=client))
    assert response.status == status


def test_network_that_is_none_is_refused() -> None:
    with pytest.raises(PluginRefused, match="neither an address nor a network"):
        chain(("ip-restriction", {"whitelist": ["10.0.0/8"]}))
