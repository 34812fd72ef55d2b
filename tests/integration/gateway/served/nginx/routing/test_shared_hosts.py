"""Hosts that Ingresses of several namespaces share: what one says of a host is not said for another namespace.

ingress-nginx makes one server of a host, so that patterns, aliases, snippets and TLS of one Ingress count for all. Here
they count within a namespace; TLS of the host's owner counts for its guests too.
"""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from fakes.gateway.served import HOST
from fakes.translator.applied import World, world
from fakes.translator.deltas import endpoint_slice, service
from fakes.translator.nginx import nginx_ingress, options
from headgate.translator.world.settings import NginxSettings, TranslationSettings

OLD, YOUNG = "2026-01-01T00:00:00Z", "2026-02-01T00:00:00Z"
SETTINGS = TranslationSettings(class_names=frozenset({"nginx"}), nginx=NginxSettings(allow_snippets=True))


@pytest.fixture
async def shared() -> AsyncIterator[World]:
    """A proxy before the Service `one` of namespace `default`, and before `two` of namespace `guests`."""
    async with world("one", "two", settings=SETTINGS) as made:
        made.proxy.apply(
            service("two", namespace="guests"),
            endpoint_slice("two", "127.0.0.1", namespace="guests", port=made.port("two")),
        )
        yield made


def owners(name: str = "web", path: str = "/App", **more: Any) -> Any:
    return nginx_ingress(name, path=path, class_name="nginx", created=more.pop("created", OLD), **more)


def guests(name: str = "guest", path: str = "/guest", **more: Any) -> Any:
    created = more.pop("created", YOUNG)
    return nginx_ingress(name, path=path, to="two", class_name="nginx", created=created, namespace="guests", **more)


def secured(manifest: Any, **tls: Any) -> Any:
    manifest["spec"]["tls"] = [tls]
    return manifest


async def test_patterns_of_a_guest_leave_the_owners_paths_as_they_are(shared: World) -> None:
    shared.proxy.apply(owners(), guests(path="/guest/(.*)", rewrite_target="/$1"))
    assert await shared.proxy.status("/App") == 200
    assert await shared.proxy.status("/app") == 404
    assert await shared.proxy.status("/Apps") == 404


async def test_patterns_of_the_owner_are_not_those_of_its_guests(shared: World) -> None:
    shared.proxy.apply(owners(use_regex="true"), guests())
    assert await shared.proxy.status("/app") == 200
    assert await shared.proxy.status("/GUEST") == 404


async def test_aliases_of_a_guest_lead_to_its_own_routes_alone(shared: World) -> None:
    shared.proxy.apply(owners(), guests(server_alias="alias.example"))
    assert await shared.proxy.status("/guest", host="alias.example") == 200
    assert await shared.proxy.status("/App", host="alias.example") == 404


async def test_a_pattern_as_an_alias_goes_before_rules_without_a_host_and_after_all_other_hosts(shared: World) -> None:
    guest = guests(path="/", host="guest.example", server_alias="~.*")
    shared.proxy.apply(owners(path="/"), owners("rest", path="/", host=""), guest)
    assert await shared.proxy.bodies(1, "/") == ["one"]
    assert await shared.proxy.bodies(1, "/", host="unknown.example") == ["two"]


async def test_an_alias_of_high_risk_can_be_kept_out(shared: World) -> None:
    shared.proxy.apply(options(annotations_risk_level="Medium"), owners("rest", path="/", host=""))
    shared.proxy.apply(guests(path="/", host="guest.example", server_alias="~.*"))
    assert await shared.proxy.bodies(1, "/", host="unknown.example") == ["one"]


async def test_the_oldest_object_with_an_alias_owns_it(shared: World) -> None:
    shared.proxy.apply(
        owners(path="/", server_alias="alias.example"), guests(path="/", host="b.example", server_alias="alias.example")
    )
    assert await shared.proxy.bodies(1, "/", host="alias.example") == ["one"]
    assert shared.proxy.errors(guests()) == ["HostNotOwned"]


async def test_the_server_snippet_of_a_guest_says_nothing_of_the_owners_routes(shared: World) -> None:
    shared.proxy.apply(owners(), guests(server_snippet="add_header X-From guest;"))
    assert (await shared.proxy.get("/guest"))["x-from"] == "guest"
    assert not (await shared.proxy.get("/App")).all("x-from")


async def test_tls_of_a_guest_redirects_its_own_routes_alone(shared: World) -> None:
    shared.proxy.apply(owners(), secured(guests(), hosts=[HOST], secretName="cert"))
    assert await shared.proxy.status("/guest") == 308
    assert await shared.proxy.status("/App") == 200


async def test_tls_of_a_guest_redirects_no_younger_routes_of_the_owner(shared: World) -> None:
    shared.proxy.apply(owners(), secured(guests(), hosts=[HOST], secretName="cert"))
    shared.proxy.apply(owners("later", path="/later", created="2026-03-01T00:00:00Z"))
    assert await shared.proxy.status("/later") == 200


async def test_tls_of_the_owner_redirects_its_guests_too(shared: World) -> None:
    plain = owners()
    shared.proxy.apply(secured(owners(), hosts=[HOST], secretName="cert"), guests())
    assert await shared.proxy.status("/guest") == 308
    shared.proxy.apply(plain)
    assert await shared.proxy.status("/guest") == 200


async def test_a_guest_can_leave_out_the_redirect_of_its_own_routes(shared: World) -> None:
    shared.proxy.apply(secured(owners(), hosts=[HOST]), guests(ssl_redirect="false"))
    assert await shared.proxy.status("/App") == 308
    assert await shared.proxy.status("/guest") == 200


@pytest.mark.parametrize("tls", [{"hosts": [HOST]}, {"secretName": "cert"}, {"hosts": ["other.example"]}, {}])
async def test_any_tls_of_an_ingress_secures_all_its_hosts(shared: World, tls: dict[str, Any]) -> None:
    shared.proxy.apply(secured(owners(), **tls), owners("second", path="/second"))
    assert await shared.proxy.status("/App") == 308
    assert await shared.proxy.status("/second") == 308


async def test_tls_of_a_wildcard_secures_the_hosts_below_it(shared: World) -> None:
    below, wildcard = owners(host="a.wild.example"), owners("wild", host="*.wild.example")
    shared.proxy.apply(below, wildcard)
    assert await shared.proxy.status("/App", host="a.wild.example") == 200
    shared.proxy.apply(secured(wildcard, hosts=["*.wild.example"]))
    assert await shared.proxy.status("/App", host="a.wild.example") == 308
    shared.proxy.delete(wildcard)
    assert await shared.proxy.status("/App", host="a.wild.example") == 200


async def test_a_wildcard_of_another_namespace_secures_nothing_below_it(shared: World) -> None:
    wildcard = secured(guests("wild", path="/", host="*.wild.example", created="2025-01-01T00:00:00Z"), hosts=["x"])
    shared.proxy.apply(wildcard, owners(host="a.wild.example"))
    assert await shared.proxy.status("/App", host="a.wild.example") == 200
    assert await shared.proxy.status("/", host="b.wild.example") == 308


async def test_a_canary_with_tls_secures_nothing(shared: World) -> None:
    canary = secured(owners("canary", canary="true", canary_weight="0"), hosts=[HOST])
    shared.proxy.apply(owners(), canary)
    assert await shared.proxy.status("/App") == 200
