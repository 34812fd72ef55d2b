"""Consumers that are held to their namespace: routes of others do not know them."""

from typing import Any

import pytest

from fakes.gateway.table import ORIGIN
from headgate.common.table import Consumer, PathMatch, PluginUse
from headgate.gateway.model.steps import finish
from headgate.gateway.plugins.interface import PluginServices
from headgate.gateway.plugins.interface.consumers import ConsumerDirectory
from headgate.gateway.plugins.runtime.host import PluginHost
from unit.gateway.plugins.people import basic, chain_for, consumer, directory, with_key
from unit.gateway.plugins.running import asked, request, unsealed

HERE, ELSEWHERE = "c1/team-a", "c1/team-b"
KEY_AUTH = ("key-auth", {})
PATH = PathMatch(type="prefix", value="/")


def scoped(name: str, namespace: str, *credentials: Any, **fields: Any) -> Consumer:
    source = ORIGIN.model_copy(update={"cluster": "c1", "namespace": namespace, "name": name})
    key = f"c1/{namespace}/{name}"
    return consumer(name, *credentials, key=key, provenance=source, is_scoped=True, **fields)


async def recognised(people: ConsumerDirectory, key: str, owner: str) -> str | None:
    asking = with_key(key)
    refused = await asked(chain_for(people, KEY_AUTH, owner=owner), asking)
    assert (refused is None) == (asking.consumer is not None)
    return asking.consumer.name if asking.consumer else None


async def test_a_consumer_of_another_namespace_is_not_recognised() -> None:
    people = directory(scoped("evil", "team-b", ("key-auth", {"key": "k"})))
    assert await recognised(people, "k", HERE) is None
    assert await recognised(people, "k", ELSEWHERE) == "evil"


async def test_two_namespaces_may_have_one_key() -> None:
    theirs = scoped("theirs", "team-b", ("key-auth", {"key": "k"}), created_at="2020-01-01T00:00:00Z")
    ours = scoped("ours", "team-a", ("key-auth", {"key": "k"}), created_at="2026-01-01T00:00:00Z")
    people = directory(theirs, ours)
    assert (await recognised(people, "k", HERE), await recognised(people, "k", ELSEWHERE)) == ("ours", "theirs")


async def test_one_namespace_of_two_clusters_is_two() -> None:
    people = directory(scoped("here", "team-a", ("key-auth", {"key": "k"})))
    assert await recognised(people, "k", "c2/team-a") is None


async def test_consumers_that_are_not_held_are_known_everywhere() -> None:
    people = directory(consumer("jack", ("key-auth", {"key": "k"})))
    assert await recognised(people, "k", HERE) == "jack"


@pytest.mark.parametrize(("owner", "status"), [(HERE, 401), (ELSEWHERE, None)])
async def test_an_anonymous_consumer_is_of_the_routes_namespace(owner: str, status: int | None) -> None:
    people = directory(scoped("anyone", "team-b", ("key-auth", {"key": "k"})))
    asking = chain_for(people, ("key-auth", {"anonymous_consumer": "anyone"}), owner=owner)
    refused = await asked(asking, request())
    assert (refused.status if refused else None) == status


async def test_users_are_held_to_their_namespace_too() -> None:
    people = directory(scoped("jack", "team-b", ("basic-auth", {"username": "jack", "password": "p"})))
    asking = chain_for(people, ("basic-auth", {}), owner=HERE)
    refused = await asked(asking, request("/", [basic("jack", "p")]))
    assert refused is not None
    assert refused.status == 401


async def test_a_consumer_that_goes_is_forgotten() -> None:
    one = scoped("jack", "team-a", ("key-auth", {"key": "k"}))
    people = directory(one)
    finish(people.replace({}, (one.key,)))
    assert await recognised(people, "k", HERE) is None


def test_routes_of_two_namespaces_share_no_plugin_that_asks_for_consumers() -> None:
    host = PluginHost(unsealed, PluginServices().send_to)
    uses = [PluginUse(name="key-auth")]
    first, again, other = (finish(host.make_plugins(uses, "a|r", PATH, one)) for one in (HERE, HERE, ELSEWHERE))
    assert first is again
    assert first is not other
