"""Secrets and ConfigMaps of a cluster that are read because other objects name them, and no others."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from fakes.kubernetes.api import FakeKubernetes, Resource
from fakes.kubernetes.following import Following, follow_kinds
from fakes.kubernetes.objects import config_map, ingress, secret
from fakes.virtual_time import in_virtual_time
from headgate.common.resources import CONFIG_MAP, INGRESS, SECRET
from headgate.watcher.sources import Applied, Deleted, Listed
from headgate.watcher.sources.kubernetes.named_only import FIND_S, MAX_FOUND
from headgate.watcher.sources.kubernetes.source import KubernetesScope, KubernetesSource, SecretScope

NGINX = "nginx.ingress.kubernetes.io"
OPTIONS = "ingress-nginx/ingress-nginx-controller"
SCOPE = KubernetesScope(secrets=SecretScope.REFERENCED, config_maps=(OPTIONS,), follows_config_maps=True)


def follow(api: FakeKubernetes, tmp_path: Path, scope: KubernetesScope = SCOPE) -> Following:
    return follow_kinds(api, tmp_path, scope)


def guarded(name: str, secret_name: str, **more: Any) -> dict[str, Any]:
    """Return an Ingress with `auth-secret`."""
    return ingress(name, annotations={f"{NGINX}/auth-secret": secret_name}, **more)


def opaque(name: str, namespace: str = "default") -> dict[str, Any]:
    return secret(name, "Opaque", namespace=namespace)


@in_virtual_time
async def test_of_other_secrets_only_those_that_an_ingress_names_are_reported(tmp_path: Path) -> None:
    async with FakeKubernetes() as api:
        for one in (secret("cert"), opaque("users"), opaque("users", "other"), opaque("unnamed")):
            api.apply(one)
        api.apply(guarded("a", "users"))
        async with follow(api, tmp_path) as seen:
            await seen.until(lambda: bool(seen.listed(SECRET)))
            assert seen.state[SECRET].keys() == {("default", "cert"), ("default", "users")}
            api.apply(opaque("late"))
            api.apply(opaque("users"))
            await asyncio.sleep(30)
            assert seen.names(SECRET) == {"cert", "users"}
        assert all("metadata.name" not in one.query["fieldSelector"] for one in api.seen("list", "secrets"))


@in_virtual_time
async def test_nothing_is_said_of_secrets_before_it_is_known_who_names_them(tmp_path: Path) -> None:
    async with FakeKubernetes() as api:
        api.apply(opaque("users"))
        api.apply(guarded("a", "users"))
        api.faults.status(503, verb="list", resource="ingresses", times=5)
        api.faults.status(503, verb="watch", resource="ingresses", times=5)
        async with follow(api, tmp_path) as seen:
            await seen.until(lambda: seen.names(SECRET) == {"users"}, within_s=120)
            kinds = [event.kind for event in seen.log if event.kind in (SECRET, INGRESS)]
            assert kinds == [INGRESS, SECRET]


@in_virtual_time
async def test_a_secret_that_is_named_from_now_on_is_reported_before_what_names_it(tmp_path: Path) -> None:
    async with FakeKubernetes() as api:
        api.apply(opaque("users"))
        api.apply(ingress("a"))
        async with follow(api, tmp_path) as seen:
            await seen.until(lambda: bool(seen.listed(SECRET)) and api.open_watches >= 7)
            assert not seen.names(SECRET)
            api.apply(guarded("a", "users"))
            await seen.until(lambda: seen.names(SECRET) == {"users"}, within_s=1)
            applied = [event.kind for event in seen.log if isinstance(event, Applied)]
            assert applied == [SECRET, INGRESS]
        asked = [one.query["fieldSelector"] for one in api.seen("list", "secrets")]
        assert any(selector.startswith("metadata.name=users,") for selector in asked)


@in_virtual_time
async def test_a_secret_that_is_named_no_more_is_reported_as_deleted(tmp_path: Path) -> None:
    async with FakeKubernetes() as api:
        api.apply(opaque("users"))
        api.apply(secret("cert"))
        api.apply(guarded("a", "users"))
        api.apply(guarded("b", "default/users"))
        async with follow(api, tmp_path) as seen:
            await seen.until(lambda: seen.names(SECRET) == {"users", "cert"})
            api.delete("ingresses", "a")
            await asyncio.sleep(10)
            assert seen.names(SECRET) == {"users", "cert"}
            api.apply(ingress("b"))
            await seen.until(lambda: seen.names(SECRET) == {"cert"})
            gone = next(event.object for event in seen.log if isinstance(event, Deleted) and event.kind is SECRET)
            assert "data" not in gone
            assert gone["metadata"]["uid"]


@in_virtual_time
async def test_a_named_secret_is_followed_through_its_life(tmp_path: Path) -> None:
    async with FakeKubernetes() as api:
        api.apply(guarded("a", "users"))
        async with follow(api, tmp_path) as seen:
            await seen.until(lambda: bool(seen.listed(SECRET)) and api.open_watches >= 7)
            api.apply(opaque("users"))
            await seen.until(lambda: seen.names(SECRET) == {"users"})
            api.apply({**opaque("users"), "data": {"auth": "Yg=="}})
            await seen.until(lambda: seen.state[SECRET]["default", "users"]["data"] == {"auth": "Yg=="})
            api.delete("secrets", "users")
            await seen.until(lambda: not seen.names(SECRET))


@in_virtual_time
async def test_a_certificate_stays_when_it_is_named_no_more(tmp_path: Path) -> None:
    async with FakeKubernetes() as api:
        api.apply(secret("cert"))
        api.apply(ingress("a", annotations={f"{NGINX}/auth-tls-secret": "default/cert"}))
        async with follow(api, tmp_path) as seen:
            await seen.until(lambda: seen.names(SECRET) == {"cert"} and api.open_watches >= 7)
            api.delete("ingresses", "a")
            await seen.until(lambda: not seen.names(INGRESS))
            assert seen.names(SECRET) == {"cert"}


@in_virtual_time
async def test_config_maps_are_reported_that_settings_options_and_ingresses_name(tmp_path: Path) -> None:
    async with FakeKubernetes() as api:
        options = config_map("ingress-nginx-controller", "ingress-nginx")
        options["data"] = {"add-headers": "ingress-nginx/headers"}
        own = config_map("own")
        own["data"] = {"add-headers": "default/unnamed"}
        for one in (options, own, config_map("headers", "ingress-nginx"), config_map("unnamed")):
            api.apply(one)
        api.apply(ingress("a", annotations={f"{NGINX}/custom-headers": "default/own"}))
        async with follow(api, tmp_path) as seen:
            await seen.until(lambda: bool(seen.listed(CONFIG_MAP)) and api.open_watches >= 7)
            assert seen.names(CONFIG_MAP) == {"ingress-nginx-controller", "headers", "own"}
            api.apply({**options, "data": {"proxy-set-headers": "default/unnamed"}})
            await seen.until(lambda: seen.names(CONFIG_MAP) == {"ingress-nginx-controller", "unnamed", "own"})


@in_virtual_time
async def test_many_that_are_named_at_once_are_listed_again_together(tmp_path: Path) -> None:
    count = MAX_FOUND + 1
    names = {f"users-{number}" for number in range(count)}
    async with FakeKubernetes() as api:
        for name in names:
            api.apply(opaque(name))
        async with follow(api, tmp_path) as seen:
            await seen.until(lambda: bool(seen.listed(SECRET)) and api.open_watches >= 7)
            api.faults.status(410, verb="watch", resource="ingresses")
            for name in names:
                api.apply(guarded(name, name))
            api.break_watches("end", "ingresses")
            await seen.until(lambda: seen.names(SECRET) == names, within_s=60)


@in_virtual_time
async def test_a_server_that_does_not_answer_holds_back_what_names_secrets_once(tmp_path: Path) -> None:
    names = {f"users-{number}" for number in range(10)}
    async with FakeKubernetes() as api:
        for name in names:
            api.apply(opaque(name))
        async with follow(api, tmp_path) as seen:
            await seen.until(lambda: bool(seen.listed(SECRET)) and api.open_watches >= 7)
            api.faults.hang(verb="list", resource="secrets", times=None)
            for name in names:
                api.apply(guarded(name, name))
            await seen.until(lambda: seen.names(INGRESS) == names, within_s=2 * FIND_S)
            api.faults.clear()
            await seen.until(lambda: seen.names(SECRET) == names, within_s=60)


@pytest.mark.parametrize("fault", [500, 403])
@in_virtual_time
async def test_a_secret_that_cannot_be_asked_for_comes_with_the_next_list(tmp_path: Path, fault: int) -> None:
    async with FakeKubernetes() as api:
        api.apply(opaque("users"))
        async with follow(api, tmp_path) as seen:
            await seen.until(lambda: bool(seen.listed(SECRET)) and api.open_watches >= 7)
            api.faults.status(fault, verb="list", resource="secrets")
            api.apply(guarded("a", "users"))
            await seen.until(lambda: seen.names(SECRET) == {"users"}, within_s=60)
            assert len(seen.listed(SECRET)) == 2


@in_virtual_time
async def test_a_kind_that_may_not_be_read_has_nothing_said_to_be_gone(tmp_path: Path) -> None:
    scope = KubernetesScope(("one", "two"), secrets=SecretScope.REFERENCED)
    async with FakeKubernetes() as api:
        api.apply(guarded("a", "users", namespace="one"))
        api.apply(opaque("users", "one"))
        api.forbid("ingresses", "two")
        async with follow(api, tmp_path, scope) as seen:
            await seen.until(lambda: seen.names(SECRET) == {"users"})
            assert not [event for event in seen.log if isinstance(event, Listed) and event.kind is SECRET]
            assert "ingresses.networking.k8s.io cannot be read" in seen.unavailable[SECRET].message
            api.allow("ingresses")
            await seen.until(lambda: bool(seen.listed(INGRESS)), within_s=301)
            await seen.until(lambda: bool(seen.listed(SECRET)), within_s=10)
            assert seen.names(SECRET) == {"users"}


@in_virtual_time
async def test_a_kind_that_goes_away_names_nothing(tmp_path: Path) -> None:
    async with FakeKubernetes() as api:
        api.install(
            "apisix.apache.org/v2", Resource("apisix.apache.org", "apisixroutes", "ApisixRoute", is_custom=True)
        )
        api.forbid("apisixroutes")
        api.apply(opaque("users"))
        api.apply(guarded("a", "users"))
        async with follow(api, tmp_path) as seen:
            await seen.until(lambda: seen.names(SECRET) == {"users"})
            assert not seen.listed(SECRET)
            api.uninstall("apisix.apache.org/v2")
            api.allow("apisixroutes")
            await seen.until(lambda: bool(seen.listed(SECRET)), within_s=700)
            assert seen.names(SECRET) == {"users"}


@in_virtual_time
async def test_nothing_is_asked_for_outside_of_the_namespaces_that_are_read(tmp_path: Path) -> None:
    scope = KubernetesScope(("one",), secrets=SecretScope.REFERENCED, follows_config_maps=True)
    async with FakeKubernetes() as api:
        api.apply(opaque("users", "two"))
        async with follow(api, tmp_path, scope) as seen:
            await seen.until(lambda: bool(seen.listed(SECRET)) and api.open_watches >= 7)
            api.apply(guarded("a", "two/users", namespace="one"))
            await seen.until(lambda: seen.names(INGRESS) == {"a"})
            assert not seen.names(SECRET)
        assert {one.namespace for one in (*api.seen("list", "secrets"), *api.seen("list", "configmaps"))} == {"one"}


@in_virtual_time
async def test_annotations_name_secrets_by_the_prefix_of_the_setting(tmp_path: Path) -> None:
    async with FakeKubernetes() as api:
        for name in ("users", "unnamed"):
            api.apply(opaque(name))
        api.apply(
            ingress("a", annotations={"team.example/auth-secret": "users", f"{NGINX}/auth-tls-secret": "unnamed"})
        )
        scope = KubernetesScope(secrets=SecretScope.REFERENCED, nginx_prefix="team.example")
        async with follow(api, tmp_path, scope) as seen:
            await seen.until(lambda: bool(seen.listed(SECRET)))
            assert seen.names(SECRET) == {"users"}


@in_virtual_time
async def test_a_name_that_can_be_none_is_not_asked_for(tmp_path: Path) -> None:
    async with FakeKubernetes() as api, follow(api, tmp_path) as seen:
        await seen.until(lambda: bool(seen.listed(SECRET)) and api.open_watches >= 7)
        asked = len(api.seen("list", "secrets"))
        api.apply(guarded("a", "users,type!=x"))
        await seen.until(lambda: seen.names(INGRESS) == {"a"})
        assert len(api.seen("list", "secrets")) == asked


@in_virtual_time
async def test_what_an_object_would_be_the_first_to_name_is_found(tmp_path: Path) -> None:
    async with FakeKubernetes() as api:
        for one in (opaque("users"), opaque("new"), guarded("a", "users")):
            api.apply(one)
        async with follow(api, tmp_path) as seen:
            await seen.until(lambda: seen.names(SECRET) == {"users"})
            assert isinstance(seen.source, KubernetesSource)
            found = [
                await seen.source.find_unreported(INGRESS, guarded("b", name)) for name in ("users", "new", "none")
            ]
            assert [[one["metadata"]["name"] for _, one in each] for each in found] == [[], ["new"], []]
            api.faults.status(500, verb="list", resource="secrets")
            assert await seen.source.find_unreported(INGRESS, guarded("b", "new")) == []
            assert seen.names(SECRET) == {"users"}
