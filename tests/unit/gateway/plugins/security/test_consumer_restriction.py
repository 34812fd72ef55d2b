from typing import Any

import pytest

from headgate.gateway.plugins.interface import Request
from unit.gateway.plugins.people import chain_for, consumer, directory, with_key
from unit.gateway.plugins.running import asked, chain, request

PEOPLE = directory(
    consumer("jack", ("key-auth", {"key": "jack"}), group="gold"),
    consumer("jill", ("key-auth", {"key": "jill"})),
)


async def status(given: Request, **config: Any) -> int:
    response = await asked(chain_for(PEOPLE, ("key-auth", {}), ("consumer-restriction", config)), given)
    return 200 if response is None else response.status


@pytest.mark.parametrize(
    ("config", "jack", "jill"),
    [
        ({"whitelist": ["jack"]}, 200, 403),
        ({"blacklist": ["jack"]}, 403, 200),
        ({"whitelist": ["jack"], "blacklist": ["jack"]}, 403, 403),
        ({"type": "consumer_group_id", "whitelist": ["gold"]}, 200, 401),
        ({"type": "consumer_group_id", "blacklist": ["gold"]}, 403, 401),
        ({"allowed_by_methods": [{"user": "jack", "methods": ["POST"]}]}, 403, 200),
        ({"allowed_by_methods": [{"user": "jack", "methods": ["GET", "POST"]}]}, 200, 200),
        ({"whitelist": ["jill"], "allowed_by_methods": [{"user": "jack", "methods": ["GET"]}]}, 403, 200),
        ({"whitelist": ["jill"], "rejected_code": 418}, 418, 200),
    ],
)
async def test_lists_and_methods_decide(config, jack, jill) -> None:
    assert [await status(with_key(name), **config) for name in ("jack", "jill")] == [jack, jill]


async def test_nobody_is_refused_with_what_is_missing() -> None:
    response = await asked(chain(("consumer-restriction", {"blacklist": ["jack"]})), request("/"))
    assert response is not None
    assert response.status == 401
    assert response.reason == "The request is rejected, please check the consumer_name for this request"


async def test_the_refusal_can_be_worded() -> None:
    config = ("consumer-restriction", {"whitelist": ["jill"], "rejected_msg": "members only"})
    response = await asked(chain_for(PEOPLE, ("key-auth", {}), config), with_key("jack"))
    assert response is not None
    assert response.body == b'{"message": "members only"}\n'


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ({"type": "route_id", "whitelist": ["r"]}, 200),
        ({"type": "route_id", "whitelist": ["a|r"]}, 200),
        ({"type": "route_id", "blacklist": ["r"]}, 403),
        ({"type": "route_id", "whitelist": ["other"]}, 403),
        ({"type": "service_id", "whitelist": ["c1/default/web:80"]}, 200),
        ({"type": "service_id", "blacklist": ["c1/default/blue:80"]}, 403),
    ],
)
async def test_a_consumer_can_be_kept_to_routes_and_upstreams(config, expected) -> None:
    kept = consumer("jack", ("key-auth", {"key": "jack"}), plugins=(("consumer-restriction", config),))
    given = with_key("jack", upstreams="c1/default/web:80,c1/default/blue:80")
    response = await asked(chain_for(directory(kept), ("key-auth", {})), given)
    assert (200 if response is None else response.status) == expected
