import pytest

from unit.gateway.plugins.people import chain_for, consumer, directory, with_key
from unit.gateway.plugins.running import asked, chain, request

PEOPLE = directory(
    consumer("jack", ("key-auth", {"key": "jack"}), labels={"org": "apache", "project": "gateway, apisix,web-server"}),
    consumer(
        "rose",
        ("key-auth", {"key": "rose"}),
        labels={"org": '["opensource","apache"]', "project": '["tomcat","web-server","http,server"]'},
    ),
    consumer("poor", ("key-auth", {"key": "poor"})),
    consumer("odd", ("key-auth", {"key": "odd"}), labels={"org": "[apache"}),
)
NAMES = ("jack", "rose", "poor", "odd")


async def statuses(**config: object) -> list[int]:
    plugins = chain_for(PEOPLE, ("key-auth", {}), ("acl", config))
    answers = [await asked(plugins, with_key(name)) for name in NAMES]
    return [200 if answer is None else answer.status for answer in answers]


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ({"allow_labels": {"org": ["apache"]}}, [200, 200, 403, 403]),
        ({"allow_labels": {"project": ["apisix"]}}, [200, 403, 403, 403]),
        ({"deny_labels": {"project": ["apisix"]}}, [403, 200, 200, 200]),
        ({"deny_labels": {"project": ["apisix", "tomcat"]}}, [403, 403, 200, 200]),
        ({"allow_labels": {"project": ["http,server"]}}, [403, 200, 403, 403]),
        ({"allow_labels": {"project": ["none"], "org": ["opensource"]}}, [403, 200, 403, 403]),
        ({"allow_labels": {"org": ["apache"]}, "deny_labels": {"project": ["tomcat"]}}, [200, 403, 403, 403]),
        ({"allow_labels": {"org": ["opensource"]}, "rejected_code": 404}, [404, 200, 404, 404]),
    ],
)
async def test_labels_decide(config, expected) -> None:
    assert await statuses(**config) == expected


async def test_the_refusal_can_be_worded() -> None:
    config = {"deny_labels": {"org": ["apache"]}, "rejected_msg": "request is forbidden"}
    answer = await asked(chain_for(PEOPLE, ("key-auth", {}), ("acl", config)), with_key("jack"))
    assert answer is not None
    assert (answer.status, answer.body) == (403, b'{"message": "request is forbidden"}\n')


async def test_a_request_without_consumer_is_refused() -> None:
    answer = await asked(chain(("acl", {"deny_labels": {"org": ["apache"]}})), request("/"))
    assert answer is not None
    assert (answer.status, answer.reason) == (401, "Missing authentication.")
