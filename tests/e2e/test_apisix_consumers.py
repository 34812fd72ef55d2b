"""Consumers of Apache APISIX seen from a client: every way to be recognised, by value and from a Secret."""

import base64
import hashlib
import hmac
import json
import time
from collections.abc import AsyncIterator, Callable, Mapping
from email.utils import formatdate
from pathlib import Path
from typing import Any, NamedTuple

import jwt
import pytest
import pytest_asyncio

from fakes.command import headgate
from fakes.peers.echo import EchoServer
from fakes.peers.ldap_server import LdapServer, ldap_server
from fakes.stack import Answer, Stack
from fakes.translator.apisix import resource, route, rule
from fakes.translator.manifests import service, write
from fakes.waiting import until

pytestmark = pytest.mark.asyncio(loop_scope="module")

SECRET = "a secret of at least 64 bytes, so that each of the algorithms takes it as it is."
USERS = "ou=users,dc=example,dc=org"
BACKENDS = [{"serviceName": "one", "servicePort": 80}]
Credentials = Callable[[str], Mapping[str, str]]


class World(NamedTuple):
    stack: Stack
    folder: Path
    ldap: LdapServer

    def write(self, name: str, *manifests: Any) -> None:
        """Write a file of manifests."""
        write(self.folder, f"{name}.yaml", *(f"{json.dumps(manifest)}\n" for manifest in manifests))

    async def get(self, host: str, headers: Mapping[str, str], method: str = "GET") -> Answer:
        return await self.stack.get(host, "/", headers=headers, method=method)

    async def statuses(self, host: str, *headers: Mapping[str, str], method: str = "GET") -> list[int]:
        return [(await self.get(host, each, method)).status for each in headers]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def world(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[World]:
    folder = tmp_path_factory.mktemp("manifests")
    people = {f"cn={name},{USERS}": "password" for name in ("value", "secret")}
    async with EchoServer("one") as one, ldap_server(people) as ldap:
        made = World(Stack(manifests=folder, extra=["--access-log=off"]), folder, ldap)
        write(folder, "services.yaml", service("one", one.port))
        made.write("main", route(rule(hosts=["main.example"], backends=BACKENDS), name="main"))
        async with made.stack:
            await made.stack.wait_for_answer("main.example", "/")
            yield made


def consumer(name: str, parameter: str = "", given: Any = None, *plugins: Any) -> Any:
    spec: dict[str, Any] = {"plugins": list(plugins)}
    if parameter:
        spec["authParameter"] = {parameter: given}
    return resource("ApisixConsumer", name, spec)


def plugin(name: str, **config: Any) -> Any:
    return {"name": name, "enable": True, "config": config}


def asking(host: str, kind: str, *plugins: Any, **more: Any) -> Any:
    block = {"enable": True, "type": kind, **more}
    return route(
        rule(hosts=[host], backends=BACKENDS, authentication=block, plugins=list(plugins)), name=host.partition(".")[0]
    )


def basic(name: str) -> Mapping[str, str]:
    return {"Authorization": "Basic " + base64.b64encode(f"{name}:password".encode()).decode()}


def token(name: str) -> Mapping[str, str]:
    return {"Authorization": "Bearer " + jwt.encode({"key": name, "exp": int(time.time()) + 600}, SECRET)}


def signature(name: str) -> Mapping[str, str]:
    date = formatdate(usegmt=True)
    signed = hmac.new(SECRET.encode(), f"{name}\nGET /\ndate: {date}\n".encode(), hashlib.sha256).digest()
    text = base64.b64encode(signed).decode()
    fields = f'keyId="{name}",algorithm="hmac-sha256",headers="@request-target date",signature="{text}"'
    return {"Authorization": f"Signature {fields}", "Date": date}


def key(name: str) -> Mapping[str, str]:
    return {"apikey": name}


@pytest.mark.parametrize(
    ("kind", "written", "credentials"),
    [
        ("keyAuth", lambda name: {"key": name}, key),
        ("basicAuth", lambda name: {"username": name, "password": "password"}, basic),
        ("jwtAuth", lambda name: {"key": name, "secret": SECRET}, token),
        ("hmacAuth", lambda name: {"key_id": name, "secret_key": SECRET}, signature),
        ("ldapAuth", lambda name: {"user_dn": f"cn={name},{USERS}"}, basic),
    ],
)
async def test_consumers_are_recognised_by_value_and_by_secret(
    world: World, kind: str, written: Callable[[str], Any], credentials: Credentials
) -> None:
    host, lower = f"{kind.lower()}.example", kind.lower()
    held = {name: base64.b64encode(value.encode()).decode() for name, value in written("secret").items()}
    secret = {"apiVersion": "v1", "kind": "Secret", "type": "Opaque", "metadata": {"name": lower}, "data": held}
    by_value = consumer(f"{lower}-value", kind, {"value": written("value")})
    by_secret = consumer(f"{lower}-secret", kind, {"secretRef": {"name": lower}})
    told = {"ldapAuth": {"base_dn": USERS, "ldap_uri": f"127.0.0.1:{world.ldap.port}", "uid": "cn"}}
    asked = asking(host, kind, **(told if kind == "ldapAuth" else {}))
    world.write(lower, secret, by_value, by_secret, asked)
    names = ("value", "secret", "nobody")

    async def are_known() -> bool:
        return await world.statuses(host, *map(credentials, names), {}) == [200, 200, 401, 401]

    await until(are_known)
    for name in names[:2]:
        answer = await world.get(host, credentials(name))
        assert answer.json["headers"]["X-Consumer-Username"] == [f"default_{lower}-{name}"]


async def test_a_consumer_is_updated_and_deleted(world: World) -> None:
    world.write("changing-route", asking("changing.example", "keyAuth"))
    world.write("changing", consumer("changing", "keyAuth", {"value": {"key": "first"}}))

    async def has(*expected: int) -> bool:
        return await world.statuses("changing.example", key("first"), key("second")) == [*expected]

    await until(lambda: has(200, 401))
    world.write("changing", consumer("changing", "keyAuth", {"value": {"key": "second"}}))
    await until(lambda: has(401, 200))
    (world.folder / "changing.yaml").unlink()
    await until(lambda: has(401, 401))


async def test_a_limit_of_a_consumer_holds_for_its_requests_alone(world: World) -> None:
    limit = plugin("limit-count", count=2, time_window=600, rejected_code=429)
    world.write(
        "limited",
        consumer("limited", "keyAuth", {"value": {"key": "limited"}}, limit),
        consumer("free", "keyAuth", {"value": {"key": "free"}}),
        asking("limited.example", "keyAuth"),
    )

    async def is_known() -> bool:
        return (await world.get("limited.example", key("free"))).status == 200

    await until(is_known)

    async def is_limited() -> bool:
        return (await world.get("limited.example", key("limited"))).status == 429

    await until(is_limited)
    assert await world.statuses("limited.example", *[key("free")] * 5) == [200] * 5
    # A limit that is made while requests come is met once, exactly.
    assert await world.statuses("limited.example", *[key("limited")] * 3) == [429] * 3


async def test_a_limit_of_a_group_is_one_for_all_of_its_consumers(world: World) -> None:
    labels = {"headgate.dev/consumer-group": "gold"}
    people = [
        resource("ApisixConsumer", name, {"authParameter": {"keyAuth": {"value": {"key": name}}}}, labels=labels)
        for name in ("ann", "ben")
    ]
    limit = plugin("limit-count", count=3, time_window=600, rejected_code=429)
    gold = resource("ApisixPluginConfig", "gold", {"plugins": [limit]}, labels=labels)
    world.write("group", *people, gold, asking("group.example", "keyAuth"))

    async def is_limited() -> bool:
        return (await world.get("group.example", key("ann"))).status == 429

    await until(is_limited)
    answer = await world.get("group.example", key("ben"))
    assert (answer.status, answer.headers["X-RateLimit-Limit"]) == (429, "3")


async def test_what_recognises_a_consumer_may_stand_among_its_plugins(world: World) -> None:
    jack = consumer("plugged", "", None, plugin("key-auth", key="plugged"))
    world.write("plugged", jack, asking("plugged.example", "keyAuth"))

    async def is_known() -> bool:
        return await world.statuses("plugged.example", key("plugged"), key("other")) == [200, 401]

    await until(is_known)


async def test_routes_restrict_consumers_by_name_and_by_method(world: World) -> None:
    people = [consumer(name, "keyAuth", {"value": {"key": name}}) for name in ("jack1", "jack2")]
    by_name = plugin("consumer-restriction", whitelist=["default_jack1"], rejected_code=403, rejected_msg="rejected")
    by_method = plugin("consumer-restriction", allowed_by_methods=[{"user": "default_jack1", "methods": ["POST"]}])
    world.write(
        "restricted",
        *people,
        asking("by-name.example", "keyAuth", by_name),
        asking("by-method.example", "keyAuth", by_method),
    )

    async def are_restricted() -> bool:
        by_names = await world.statuses("by-name.example", key("jack1"), key("jack2"), {})
        gets = await world.statuses("by-method.example", key("jack1"), key("jack2"))
        posts = await world.statuses("by-method.example", key("jack1"), method="POST")
        return (by_names, gets, posts) == ([200, 403, 401], [403, 200], [200])

    await until(are_restricted)
    assert (await world.get("by-name.example", key("jack2"))).json == {"message": "rejected"}


async def test_consumers_are_listed_without_their_keys(world: World) -> None:
    world.write(
        "listed", consumer("listed", "keyAuth", {"value": {"key": "listed-key"}}), asking("listed.example", "keyAuth")
    )

    async def is_known() -> bool:
        return (await world.get("listed.example", key("listed-key"))).status == 200

    await until(is_known)
    shown = await headgate("consumers", "--json", f"--data-dir={world.stack.data_dir}")
    (line,) = (line for line in shown.json["consumers"] if line["name"] == "default_listed")
    assert (line["credentials"], line["source"]) == (["key-auth"], "ApisixConsumer default/listed")
    assert "listed-key" not in shown.out
