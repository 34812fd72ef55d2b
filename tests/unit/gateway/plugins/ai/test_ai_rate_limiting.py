"""Limits of tokens, by the cases of Apache APISIX (t/plugin/ai-rate-limiting*.t)."""

from dataclasses import replace
from typing import Any

import pytest

from headgate.common.plugins.ai.costs import CostExpression
from headgate.common.plugins.checking import check_use
from headgate.common.plugins.errors import PluginFault
from headgate.common.table import PluginUse
from headgate.gateway.plugins.interface import Response
from unit.gateway.plugins.ai.provider import CHAT, FakeProvider, fake_provider, says
from unit.gateway.plugins.ai.test_ai_proxy import CHAT_REQUEST, asking
from unit.gateway.plugins.running import Clock, asked, chain

ANTHROPIC = {
    "content": [],
    "usage": {
        "input_tokens": 50,
        "cache_read_input_tokens": 200,
        "cache_creation_input_tokens": 100,
        "output_tokens": 30,
    },
}


class Limited:
    """A model behind a limit."""

    def __init__(self, server: FakeProvider, **config: Any) -> None:
        self.clock = Clock()
        proxy = {"provider": "openai", "auth": {}, "override": {"endpoint": server.url}}
        services = replace(server.services, clock=self.clock)
        self.plugins = chain(("ai-proxy", proxy), ("ai-rate-limiting", config), services=services)

    async def ask(self, *headers: tuple[str, str], client: str = "192.0.2.1") -> Response:
        given = asking(CHAT_REQUEST, headers=headers, client=client)
        response = await asked(self.plugins, given)
        assert response is not None
        self.plugins.on_response(given, response)
        await response.read_body(1 << 16)
        self.plugins.on_finish(given, response.status, 0.1)
        return response

    async def statuses(self, count: int) -> list[int]:
        return [(await self.ask()).status for _ in range(count)]


async def test_requests_pass_until_the_tokens_are_used_up_and_again_in_the_next_window() -> None:
    async with fake_provider(says(CHAT)) as server:
        limited = Limited(server, limit=30, time_window=60)
        assert await limited.statuses(5) == [200, 200, 200, 503, 503]
        limited.clock.now += 60
        assert await limited.statuses(1) == [200]
        assert len(server.asked) == 4


async def test_answers_say_what_was_left() -> None:
    async with fake_provider(says(CHAT)) as server:
        limited = Limited(server, limit=20, time_window=45)
        told = []
        for _ in range(3):
            headers = (await limited.ask()).headers
            names = ("Limit", "Remaining", "Reset")
            told.append([headers.get(f"X-AI-RateLimit-{name}-ai-proxy-openai") for name in names])
            limited.clock.now += 5
    assert told == [["20", "20", "45"], ["20", "10", "40"], ["20", "0", "35"]]


@pytest.mark.parametrize(
    ("config", "passed"),
    [
        ({"limit": 20, "time_window": 45, "limit_strategy": "completion_tokens"}, 10),
        ({"limit": 20, "time_window": 45, "limit_strategy": "prompt_tokens"}, 3),
        ({"instances": [{"name": "ai-proxy-openai", "limit": 10, "time_window": 1}]}, 1),
        ({"instances": [{"name": "other", "limit": 10, "time_window": 1}]}, 12),
        ({"rules": [{"count": 10, "time_window": 1, "key": "$http_x_none"}]}, 12),
        ({"rules": [{"count": 20, "time_window": 1, "key": "$remote_addr"}]}, 2),
        ({"limit": "$http_x_none", "time_window": 1, "allow_degradation": True}, 12),
        ({"limit": 10, "time_window": 1, "allowlist": ["192.0.2.0/24"]}, 12),
    ],
)
async def test_what_counts_is_configured(config, passed) -> None:
    async with fake_provider(says(CHAT)) as server:
        statuses = await Limited(server, **config).statuses(12)
    assert statuses == [200] * passed + [503] * (12 - passed)


async def test_rules_count_by_key_and_have_headers_of_their_own() -> None:
    rules = [
        {"count": 10, "time_window": 10, "key": "$http_project"},
        {"count": 30, "time_window": 10, "key": "$http_user", "header_prefix": "User"},
    ]
    async with fake_provider(says(CHAT)) as server:
        limited = Limited(server, rules=rules)
        first = await limited.ask(("project", "x"))
        assert first.headers.get("X-AI-1-RateLimit-Limit") == "10"
        assert "X-AI-User-RateLimit-Limit" not in first.headers
        assert (await limited.ask(("project", "y"))).status == 200
        assert (await limited.ask(("project", "x"))).status == 503
        assert (await limited.ask(("user", "u"))).headers.get("X-AI-User-RateLimit-Remaining") == "30"


async def test_the_refusal_can_be_worded() -> None:
    async with fake_provider(says(CHAT)) as server:
        config = {"limit": 1, "time_window": 60, "rejected_code": 403, "rejected_msg": "rate limit exceeded"}
        limited = Limited(server, **config, show_limit_quota_header=False)
        await limited.ask()
        refused = await limited.ask()
    assert (refused.status, refused.body) == (403, b'{"error_msg": "rate limit exceeded"}\n')
    assert not any(name.startswith("X-AI-") for name, _ in refused.headers)


async def test_an_answer_without_tokens_counts_for_nothing() -> None:
    async with fake_provider(says({"error": 1}, 400)) as server:
        assert await Limited(server, limit=1, time_window=60).statuses(3) == [400] * 3


@pytest.mark.parametrize(
    ("text", "cost"),
    [
        ("input_tokens + cache_creation_input_tokens + output_tokens", 180),
        ("input_tokens + cache_read_input_tokens * 0.1 + cache_creation_input_tokens * 1.25 + output_tokens", 225),
        ("(input_tokens - cache_read_input_tokens) * 2", 0),
        ("input_tokens + nonexistent + output_tokens", 80),
        ("math.max(input_tokens, output_tokens) % 7 + min(1, 2) + abs(-3)", 5),
        ("input_tokens / nonexistent", None),
        ("1e308 * 1e308 * input_tokens", None),
    ],
)
async def test_costs_are_computed(text, cost) -> None:
    assert CostExpression(text).cost(ANTHROPIC["usage"]) == cost  # type: ignore[arg-type]


async def test_an_expression_decides_what_counts() -> None:
    async with fake_provider(says(ANTHROPIC)) as server:
        config = {"limit": 100, "time_window": 60, "limit_strategy": "expression"}
        expression = "input_tokens + cache_creation_input_tokens"
        assert await Limited(server, **config, cost_expr=expression).statuses(2) == [200, 503]


@pytest.mark.parametrize(
    "config",
    [
        {"time_window": 60},
        {"limit": 30},
        {},
        {"limit": 30, "time_window": 60, "rejected_code": 199},
        {"limit": 30, "time_window": 60, "limit_strategy": "invalid"},
        {"limit": 30, "time_window": 60, "instances": [{"limit": 30, "time_window": 60}]},
        {"limit": 30, "time_window": 60, "rules": [{"count": 1, "time_window": 1, "key": "$x"}]},
        {"limit": 30, "time_window": 60, "limit_strategy": "expression"},
        *(
            {"limit": 30, "time_window": 60, "limit_strategy": "expression", "cost_expr": text}
            for text in ("invalid $$$", "a.b", "open('x')", "2 ** 9", "a if b else c", "x" * 1025, "(" * 500, "max(*a)")
        ),
    ],
)
def test_a_wrong_configuration_is_refused(config) -> None:
    with pytest.raises(PluginFault):
        check_use(PluginUse(name="ai-rate-limiting", config=config))
