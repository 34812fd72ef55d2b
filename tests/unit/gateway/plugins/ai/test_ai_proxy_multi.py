"""Several models, by the cases of Apache APISIX (t/plugin/ai-proxy-multi*.t); providers are servers of the test."""

import asyncio
import json
from contextlib import AsyncExitStack
from typing import Any

import pytest

from headgate.common.plugins.checking import check_use
from headgate.common.plugins.errors import PluginFault
from headgate.common.table import PluginUse
from headgate.gateway.plugins.interface import PluginServices, Response
from unit.gateway.plugins.ai.provider import CHAT, Answer, FakeProvider, fake_provider, says
from unit.gateway.plugins.ai.test_ai_proxy import CHAT_REQUEST, asking
from unit.gateway.plugins.running import asked, chain

WRONG = {"error": "told"}


def instance(name: str, server: FakeProvider, **fields: Any) -> dict[str, Any]:
    auth = {"header": {"Authorization": f"Bearer {name}"}}
    override = {"endpoint": server.url}
    return {"name": name, "provider": "openai", "weight": 1, "auth": auth, "override": override, **fields}


class Models:
    """Two models, `a` and `b`."""

    def __init__(self, servers: list[FakeProvider]) -> None:
        self.servers = servers
        self.services: PluginServices = servers[0].services

    @property
    def counts(self) -> list[int]:
        return [len(server.asked) for server in self.servers]

    def chain(self, *others: tuple[str, dict[str, Any]], a: Any = (), b: Any = (), **config: Any) -> Any:
        instances = [instance("a", self.servers[0], **dict(a)), instance("b", self.servers[1], **dict(b))]
        return chain(("ai-proxy-multi", {"instances": instances, **config}), *others, services=self.services)

    async def ask(self, times: int = 1, headers: tuple[tuple[str, str], ...] = (), **config: Any) -> list[int]:
        plugins = self.chain(**config)
        return [(await answer(plugins, headers)).status for _ in range(times)]


async def answer(plugins: Any, headers: tuple[tuple[str, str], ...] = ()) -> Response:
    given = asking(CHAT_REQUEST, headers=headers)
    response = await asked(plugins, given)
    assert response is not None
    plugins.on_response(given, response)
    await response.read_body(1 << 16)
    plugins.on_finish(given, response.status, 0.1)
    return response


async def models(stack: AsyncExitStack, *answers: Answer) -> Models:
    return Models([await stack.enter_async_context(fake_provider(each)) for each in answers])


async def test_instances_share_requests_by_weight() -> None:
    async with AsyncExitStack() as stack:
        both = await models(stack, says(CHAT), says(CHAT))
        assert await both.ask(8, a={"weight": 3}) == [200] * 8
        assert both.counts == [6, 2]
        assert {seen.headers["Authorization"] for seen in both.servers[1].asked} == {"Bearer b"}


async def test_the_greater_priority_goes_first_and_a_hash_stays_where_it_is() -> None:
    async with AsyncExitStack() as stack:
        both = await models(stack, says(CHAT), says(CHAT))
        await both.ask(3, b={"priority": 1})
        assert both.counts == [0, 3]
        balancer = {"algorithm": "chash", "hash_on": "header", "key": "X-User"}
        for user in "abcdefgh":
            before = both.counts
            await both.ask(4, (("X-User", user),), balancer=balancer)
            assert sorted(after - was for after, was in zip(both.counts, before, strict=True)) == [0, 4]
        assert all(count > 3 for count in both.counts)


@pytest.mark.parametrize(
    ("status", "config", "expected"),
    [
        (500, {"fallback_strategy": ["http_5xx"]}, 200),
        (500, {"fallback_strategy": "http_5xx"}, 200),
        (429, {"fallback_strategy": ["http_429", "http_5xx"]}, 200),
        (429, {"fallback_strategy": ["http_5xx"]}, 429),
        (500, {"fallback_strategy": "http_429"}, 500),
        (500, {}, 500),
        (401, {"fallback_strategy": ["http_5xx"]}, 401),
        (401, {"fallback_http_statuses": [401, 402]}, 200),
        (401, {"fallback_http_statuses": [401, 402], "max_retries": 0}, 401),
        (500, {"fallback_strategy": ["http_5xx"], "max_retries": 1}, 200),
    ],
)
async def test_another_instance_is_asked_for_configured_failures(status, config, expected) -> None:
    async with AsyncExitStack() as stack:
        both = await models(stack, says(WRONG, status), says(CHAT))
        assert await both.ask(a={"priority": 1, "options": {"model": "one", "n": 1}}, **config) == [expected]
        if expected == 200:
            assert both.servers[1].asked[0].body == CHAT_REQUEST  # nothing of the first one's options


async def test_a_late_failure_is_the_answer() -> None:
    async with AsyncExitStack() as stack:

        async def late(seen: Any, request: Any) -> Any:
            await asyncio.sleep(0.05)
            return await says(WRONG, 500)(seen, request)

        both = await models(stack, late, says(CHAT))
        config = {"fallback_strategy": ["http_5xx"], "retry_on_failure_within_ms": 10}
        assert await both.ask(a={"priority": 1}, **config) == [500]
        assert both.counts == [1, 0]


async def test_all_that_fail_are_a_502() -> None:
    async with AsyncExitStack() as stack:
        both = await models(stack, says(WRONG, 500), says(WRONG, 503))
        assert await both.ask(fallback_strategy=["http_5xx"]) == [502]
        assert both.counts == [1, 1]
        gone = {"override": {"endpoint": "http://127.0.0.1:1"}, "priority": 1}
        assert await both.ask(a=gone, fallback_strategy=["http_5xx"]) == [502]


LIMIT = ("ai-rate-limiting", {"instances": [{"name": "a", "limit": 10, "time_window": 60}]})


async def test_a_limited_instance_is_passed_over() -> None:
    async with AsyncExitStack() as stack:
        both = await models(stack, says(CHAT), says(CHAT))
        plugins = both.chain(LIMIT, a={"priority": 1}, fallback_strategy="instance_health_and_rate_limiting")
        assert [(await answer(plugins)).status for _ in range(3)] == [200] * 3
        assert both.counts == [1, 2]
        assert (await answer(both.chain(LIMIT, a={"priority": 1}))).status == 503


async def test_a_request_that_all_limits_refuse_is_a_503() -> None:
    limit = ("ai-rate-limiting", {"limit": 10, "time_window": 60, "rejected_code": 429})
    async with AsyncExitStack() as stack:
        both = await models(stack, says(CHAT), says(CHAT))
        plugins = both.chain(limit, fallback_strategy=["rate_limiting"])
        first, second = await answer(plugins), await answer(plugins)
    assert (first.status, second.status, second.body) == (200, 503, b"all servers tried")


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"instances": []}, "config.instances"),
        ({"fallback_http_statuses": [200]}, "config.fallback_http_statuses.0"),
        ({"balancer": {"algorithm": "chash"}}, "config.balancer"),
        ({"balancer": {"algorithm": "semantic"}}, "config.balancer.algorithm"),
    ],
)
def test_a_wrong_configuration_is_refused_at_its_field(fields, field) -> None:
    one = {"name": "a", "provider": "openai", "weight": 1, "auth": {}}
    with pytest.raises(PluginFault) as fault:
        check_use(PluginUse(name="ai-proxy-multi", config={"instances": [one], **fields}))
    assert fault.value.field == field


def test_two_instances_of_one_name_are_refused() -> None:
    one = {"name": "a", "provider": "openai", "weight": 1, "auth": {}}
    with pytest.raises(PluginFault, match="two with the name a"):
        check_use(PluginUse(name="ai-proxy-multi", config=json.loads(json.dumps({"instances": [one, one]}))))
