"""The examples of Apache APISIX' documentation that are about consumers, from its resources to the wire."""

import asyncio
import json
from typing import Any

import jwt
import pytest

from fakes.gateway.served import HOST
from fakes.translator.apisix import resource, route, rule
from fakes.translator.applied import World, secret, switching, world
from unit.gateway.plugins.people import basic

LIMITED = {"name": "limit-count", "enable": True, "config": {"count": 1, "time_window": 600, "rejected_code": 429}}
GENEROUS = {"name": "limit-count", "enable": True, "config": {"count": 3, "time_window": 600, "rejected_code": 429}}
GATEWAY = {
    "apiVersion": "gateway.networking.k8s.io/v1",
    "kind": "Gateway",
    "metadata": {"name": "entrance", "namespace": "default", "uid": "uid-entrance"},
    "spec": {"gatewayClassName": "headgate"},
}


def asking(plugin: str, made: World) -> None:
    """Serve a route that asks who is there, or takes the request as the anonymous consumer's."""
    config = {"anonymous_consumer": "default_anonymous"}
    use = {"name": plugin, "enable": True, "config": config}
    made.proxy.apply(
        route(rule(hosts=[HOST], backends=[{"serviceName": "one", "servicePort": 80}], plugins=[use])), GATEWAY
    )


def of_v1alpha1(name: str, *credentials: Any, plugins: Any) -> Any:
    spec = {"gatewayRef": {"name": "entrance"}, "plugins": plugins}
    return resource("Consumer", name, spec | ({"credentials": list(credentials)} if credentials else {}), "v1alpha1")


ANONYMOUS = [
    resource("ApisixConsumer", "anonymous", {"plugins": [LIMITED]}),
    of_v1alpha1("anonymous", plugins=[{"name": "limit-count", "config": LIMITED["config"]}]),
]


@pytest.mark.parametrize("plugin", ["key-auth", "basic-auth", "jwt-auth", "hmac-auth"])
@pytest.mark.parametrize("anonymous", ANONYMOUS, ids=["ApisixConsumer", "Consumer"])
async def test_rate_limit_with_anonymous_consumer(plugin: str, anonymous: Any) -> None:
    async with world("one") as made:
        asking(plugin, made)
        assert await made.proxy.status() == 401
        made.proxy.apply(anonymous)
        assert [await made.proxy.status() for _ in range(3)] == [200, 429, 429]
        assert b"\r\nX-Consumer-Username: default_anonymous\r\n" in made.servers["one"].heads[0]


@pytest.mark.parametrize(
    ("plugin", "parameter", "values", "brought"),
    [
        ("key-auth", "keyAuth", {"key": "john-key"}, {"Apikey": "john-key"}),
        ("basic-auth", "basicAuth", {"username": "john", "password": "p"}, dict([basic("john", "p")])),
    ],
)
async def test_a_recognised_consumer_has_its_own_quota(plugin: str, parameter: str, values: Any, brought: Any) -> None:
    john = {"authParameter": {parameter: {"secretRef": {"name": "john"}}}, "plugins": [GENEROUS]}
    async with world("one") as made:
        asking(plugin, made)
        made.proxy.apply(ANONYMOUS[0], secret("john", **values), resource("ApisixConsumer", "john", john))
        assert [await made.proxy.status(**brought) for _ in range(4)] == [200, 200, 200, 429]
        assert [await made.proxy.status() for _ in range(2)] == [200, 429]


JWT_KEY, JWT_SECRET = "john-key", "a secret of at least thirty-two bytes"
TOKEN = jwt.encode({"key": JWT_KEY, "exp": 4_102_444_800}, JWT_SECRET, "HS256")


@pytest.mark.parametrize(
    ("plugin", "parameter", "values", "brought"),
    [
        ("key-auth", "keyAuth", {"key": "john-key"}, {"Apikey": "john-key"}),
        ("basic-auth", "basicAuth", {"username": "john", "password": "p"}, dict([basic("john", "p")])),
        ("jwt-auth", "jwtAuth", {"key": JWT_KEY, "secret": JWT_SECRET}, {"Authorization": TOKEN}),
    ],
)
async def test_the_upstream_is_told_the_custom_id(plugin: str, parameter: str, values: Any, brought: Any) -> None:
    john = resource("ApisixConsumer", "john", {"authParameter": {parameter: {"secretRef": {"name": "john"}}}})
    john["metadata"]["labels"] = {"custom_id": "495aec6a"}
    async with world("one") as made:
        asking(plugin, made)
        made.proxy.apply(secret("john", **values), john)
        assert await made.proxy.status(**brought) == 200
        assert b"\r\nX-Consumer-Custom-Id: 495aec6a\r\n" in made.servers["one"].heads[0]


def serving(made: World, *uses: tuple[str, Any], people: tuple[str, ...]) -> None:
    """Serve a route with plugins, and consumers whose keys are `<name>-key`."""
    plugins = [{"name": name, "enable": True, "config": config} for name, config in uses]
    made.proxy.apply(
        route(
            rule(hosts=[HOST], backends=[{"serviceName": "one", "servicePort": 80}], plugins=plugins, websocket=True)
        ),
        *(
            resource("ApisixConsumer", name, {"authParameter": {"keyAuth": {"value": {"key": f"{name}-key"}}}})
            for name in people
        ),
    )


@pytest.mark.parametrize(
    ("plugin", "limit"),
    [
        ("limit-count", {"count": 1, "time_window": 600, "key_type": "var_combination"}),
        ("limit-req", {"rate": 0.001, "burst": 0, "key_type": "var_combination"}),
    ],
)
async def test_limits_count_by_address_and_consumer_name(plugin: str, limit: Any) -> None:
    limited = (plugin, {**limit, "rejected_code": 429, "key": "$remote_addr $consumer_name"})
    async with world("one") as made:
        serving(made, ("key-auth", {}), limited, people=("john", "jane"))
        keys = ("jane-key", "jane-key", "john-key", "john-key")
        assert [await made.proxy.status(Apikey=key) for key in keys] == [200, 429, 200, 429]


async def test_connections_are_bounded_by_address_and_consumer_name() -> None:
    config = {"conn": 1, "burst": 0, "default_conn_delay": 0.1, "rejected_code": 429, "key_type": "var_combination"}
    limited = ("limit-conn", {**config, "key": "$remote_addr $consumer_name"})
    async with world(one=switching) as made:
        serving(made, ("key-auth", {}), limited, people=("john", "jane"))
        statuses = []
        for key in ("jane-key", "jane-key", "john-key", "john-key"):
            client = await made.proxy.offer_websocket(Apikey=key)
            statuses.append((await client.head())[9:12])
    assert statuses == [b"101", b"429", b"101", b"429"]


async def test_a_key_in_the_header_goes_before_one_in_the_query() -> None:
    async with world("one") as made:
        serving(made, ("key-auth", {"query": "auth"}), people=("jack",))
        assert await made.proxy.status("/anything?auth=jack-key") == 200
        assert await made.proxy.status("/anything?auth=wrong-key") == 401
        assert await made.proxy.status("/anything?auth=wrong-key", Apikey="jack-key") == 200


FLAT = """{% local consumer_name = _ctx.consumer and _ctx.consumer.username or "" %}
{% if consumer_name == "default_consumer-a" then %}
{"user_id": {* user_id *}, "display_name": {* _escape_json(username) *}, "email": {* _escape_json(email) *}}
{% elseif consumer_name == "default_consumer-b" then %}
{"user_id": {* user_id *}, "email": {* _escape_json(email) *}, "balance": {* balance *}}
{% else %}
{* _body *}
{% end %}"""
FLAT_BODY = {
    "user_id": 1001,
    "username": "john_doe",
    "email": "john@example.com",
    "phone": "+1-555-0123",
    "balance": 1250.50,
}
NESTED = """{% local consumer_name = _ctx.consumer and _ctx.consumer.username or "" %}
{% if consumer_name == "default_consumer-a" then %}
{"user_id": {* id *}, "user_name": {* _escape_json(name) *}, "email": {* _escape_json(profile.email) *},
 "location": {"city": {* _escape_json(profile.address.city) *}, "country": {* _escape_json(profile.address.country) *}},
 "created_at": {* _escape_json(metadata.created_at) *}}
{% elseif consumer_name == "default_consumer-b" then %}
{"id": {* id *}, "name": {* _escape_json(name) *}, "status": {* _escape_json(status) *},
 "profile": {"email": {* _escape_json(profile.email) *},
             "address": {"city": {* _escape_json(profile.address.city) *}}}}
{% else %}
{* _body *}
{% end %}"""
NESTED_BODY = {
    "id": 123,
    "name": "John Doe",
    "status": "active",
    "profile": {"email": "john@example.com", "address": {"city": "New York", "country": "USA"}},
    "metadata": {"created_at": "2024-01-01", "tags": ["vip", "premium"]},
}


@pytest.mark.parametrize(
    ("template", "body", "answers"),
    [
        (
            FLAT,
            FLAT_BODY,
            {
                "consumer-a": {"user_id": 1001, "display_name": "john_doe", "email": "john@example.com"},
                "consumer-b": {"user_id": 1001, "email": "john@example.com", "balance": 1250.50},
                "consumer-c": FLAT_BODY,
            },
        ),
        (
            NESTED,
            NESTED_BODY,
            {
                "consumer-a": {
                    "user_id": 123,
                    "user_name": "John Doe",
                    "email": "john@example.com",
                    "location": {"city": "New York", "country": "USA"},
                    "created_at": "2024-01-01",
                },
                "consumer-b": {
                    "id": 123,
                    "name": "John Doe",
                    "status": "active",
                    "profile": {"email": "john@example.com", "address": {"city": "New York"}},
                },
                "consumer-c": NESTED_BODY,
            },
        ),
    ],
    ids=["flat", "nested"],
)
async def test_bodies_are_transformed_by_the_identity_of_the_consumer(template: str, body: Any, answers: Any) -> None:
    plugins = [
        {"name": "key-auth", "enable": True, "config": {}},
        {"name": "mocking", "enable": True, "config": {"response_example": json.dumps(body)}},
        {
            "name": "body-transformer",
            "enable": True,
            "config": {"response": {"input_format": "json", "template": template}},
        },
    ]
    async with world("one") as made:
        backends = [{"serviceName": "one", "servicePort": 80}]
        made.proxy.apply(route(rule(hosts=[HOST], backends=backends, plugins=plugins)))
        for name in answers:
            held = {"authParameter": {"keyAuth": {"value": {"key": name}}}}
            made.proxy.apply(resource("ApisixConsumer", name, held))
        for name, expected in answers.items():
            assert json.loads((await made.proxy.get(Apikey=name)).body) == expected
        assert (await made.proxy.get()).status == 401


async def test_websocket_connections_are_bounded_while_they_last() -> None:
    config = {"conn": 2, "burst": 1, "default_conn_delay": 0.1, "rejected_code": 429, "key": "remote_addr"}
    use = {"name": "limit-conn", "enable": True, "config": {**config, "key_type": "var"}}
    async with world(one=switching) as made:
        backends = [{"serviceName": "one", "servicePort": 80}]
        made.proxy.apply(route(rule(hosts=[HOST], backends=backends, plugins=[use], websocket=True)))
        clients = [await made.proxy.offer_websocket() for _ in range(3)]
        for client in clients:
            assert (await client.head()).startswith(b"HTTP/1.1 101 ")
            await client.send(b"hello")
            assert await client.exactly(5) == b"hello"
        refused = await made.proxy.offer_websocket()
        assert (await refused.head()).startswith(b"HTTP/1.1 429 ")
        clients[0].close()
        async with asyncio.timeout(10):
            while b" 429 " in await (await made.proxy.offer_websocket()).head():
                pass
