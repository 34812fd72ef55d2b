import pytest

from headgate.gateway.plugins.interface import PluginServices
from headgate.gateway.plugins.interface.errors import PluginRefused
from headgate.gateway.plugins.runtime.chain import PluginChain
from unit.gateway.plugins.running import Clock, asked, chain, request

CONFIG = {"break_response_code": 502, "unhealthy": {"failures": 3}, "healthy": {"successes": 2}}


@pytest.fixture
def clock() -> Clock:
    return Clock()


def breaker(clock: Clock, **more) -> PluginChain:
    return chain(("api-breaker", {**CONFIG, **more}), services=PluginServices(clock=clock))


async def is_open(plugins: PluginChain, target: str = "/") -> bool:
    return await asked(plugins, request(target)) is not None


async def answers(plugins: PluginChain, *statuses: int, target: str = "/") -> None:
    for status in statuses:
        given = request(target)
        await asked(plugins, given)
        given.upstream_status = status
        plugins.on_finish(given, 200, 0.1)


async def test_circuit_opens_after_so_many_failures(clock) -> None:
    plugins = breaker(clock)
    await answers(plugins, 500, 500)
    assert not await is_open(plugins)
    await answers(plugins, 500)
    assert await is_open(plugins)


async def test_statuses_that_are_not_listed_count_for_nothing(clock) -> None:
    plugins = breaker(clock)
    await answers(plugins, 503, 502, 404, 503)
    assert not await is_open(plugins)


async def test_circuit_is_open_twice_as_long_each_time_up_to_a_limit(clock) -> None:
    plugins = breaker(clock, max_breaker_sec=3)
    for open_s in (2, 3, 3):
        await answers(plugins, 500, 500, 500)
        clock.now += open_s - 0.1
        assert await is_open(plugins)
        clock.now += 0.1
        assert not await is_open(plugins)


async def test_successes_close_it_for_good(clock) -> None:
    plugins = breaker(clock)
    await answers(plugins, 500, 500, 500)
    clock.now += 2
    await answers(plugins, 200, 200, 500, 500)
    assert not await is_open(plugins)


async def test_failure_between_successes_begins_to_count_them_anew(clock) -> None:
    plugins = breaker(clock)
    await answers(plugins, 500, 200, 500, 200, 500)
    assert await is_open(plugins)


async def test_paths_are_counted_apart(clock) -> None:
    plugins = breaker(clock)
    await answers(plugins, 500, 500, 500, target="/a")
    assert await is_open(plugins, "/a?b")
    assert not await is_open(plugins, "/b")


async def test_answer_meanwhile_is_what_it_is_told_to_be(clock) -> None:
    more = {"break_response_body": "gone $uri", "break_response_headers": [{"key": "X-A", "value": "$arg_a"}]}
    plugins = breaker(clock, **more)
    await answers(plugins, 500, 500, 500)
    response = await asked(plugins, request("/?a=1"))
    assert response is not None
    assert (response.status, response.body, response.headers.get("X-A")) == (502, b"gone /", "1")


@pytest.mark.parametrize(
    ("config", "told"),
    [
        ({}, r"config\.break_response_code: is required"),
        ({**CONFIG, "unhealthy": {"http_statuses": [404]}}, r"unhealthy\.http_statuses\.0: .*500, but is 404"),
        ({**CONFIG, "max_breaker_sec": 2}, "but is 2"),
        ({**CONFIG, "break_response_headers": [{"key": "a", "value": "b"}]}, "needs break_response_body"),
    ],
)
def test_bad_configuration_is_refused(config, told) -> None:
    with pytest.raises(PluginRefused, match=told):
        chain(("api-breaker", config))
