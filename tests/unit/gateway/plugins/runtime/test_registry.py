from dataclasses import replace
from importlib.metadata import EntryPoint

import pytest

from headgate.common.errors import SealingError
from headgate.common.plugins.third_party import ENTRY_POINT_GROUP
from headgate.common.sealing import ClusterValue, Purpose
from headgate.common.table import PluginUse
from headgate.gateway.model.steps import finish
from headgate.gateway.plugins.interface import Plugin, PluginConfig, PluginServices
from headgate.gateway.plugins.interface.errors import PluginRefused
from headgate.gateway.plugins.runtime.registry import PluginRegistry
from unit.gateway.plugins.running import REGISTRY, unsealed


class Foreign(Plugin[PluginConfig]):
    name = "foreign"


class NotOne:
    name = "not-one"


def refused(use: PluginUse, registry: PluginRegistry = REGISTRY, unseal=unsealed) -> PluginRefused:
    with pytest.raises(PluginRefused) as caught:
        registry.make(use, PluginServices(), unseal)
    return caught.value


def found(name: str, place: str) -> PluginRegistry:
    return PluginRegistry([EntryPoint(name, place, ENTRY_POINT_GROUP)])


def test_unknown_plugin_is_refused_with_one_like_it() -> None:
    assert "the nearest is gzip" in str(refused(PluginUse(name="gzipp")))


def test_what_the_translator_could_not_follow_is_refused_in_its_words() -> None:
    assert str(refused(PluginUse(name="cors", fault="the Secret is gone"))) == "plugin cors: the Secret is gone"


def test_unknown_field_is_refused_with_one_like_it() -> None:
    error = refused(PluginUse(name="cors", config={"max_agee": 1}))
    assert error.plugin == "cors"
    assert error.field == "config.max_agee"
    assert "the nearest is max_age" in str(error)


def test_bad_value_is_refused_with_its_place() -> None:
    error = refused(PluginUse(name="limit-req", config={"rate": 0, "burst": 1}))
    assert error.field == "config.rate"
    assert "greater than 0" in error.message


def test_missing_field_is_named() -> None:
    error = refused(PluginUse(name="limit-req", config={"rate": 1}))
    assert (error.field, error.message) == ("config.burst", "is required")


def test_pattern_that_is_none_is_refused() -> None:
    error = refused(PluginUse(name="redirect", config={"regex_uri": ["(", "/"]}))
    assert "RE2" in error.message


def test_secret_is_put_into_its_place_and_prints_as_stars() -> None:
    use = PluginUse(
        name="basic-auth",
        config={"users": [{"username": "u"}]},
        secrets={"users.0.password": ClusterValue(boxes={"r": "hidden"})},
    )
    plugin = REGISTRY.make(use, PluginServices(), unsealed)
    assert plugin.config.users[0].password.reveal() == "hidden"
    assert "hidden" not in repr(plugin.config)
    assert use.config == {"users": [{"username": "u"}]}


@pytest.mark.parametrize("place", ["users.1.password", "users.x.password", "realm.a"])
def test_secret_without_a_place_is_refused(place) -> None:
    use = PluginUse(
        name="basic-auth",
        config={"users": [{"username": "u"}], "realm": "r"},
        secrets={place: ClusterValue(boxes={"r": "hidden"})},
    )
    error = refused(use)
    assert error.field == f"secrets.{place}"
    assert "hidden" not in str(error)


def test_secret_that_cannot_be_opened_is_refused() -> None:
    def fail(sealed: ClusterValue, purpose: Purpose):
        raise SealingError("sealed for others")

    use = PluginUse(name="basic-auth", secrets={"htpasswd": ClusterValue(boxes={"r": "x"})})
    assert "sealed for others" in str(refused(use, unseal=fail))


def test_bad_secret_does_not_show_in_the_error() -> None:
    use = PluginUse(name="basic-auth", secrets={"htpasswd": ClusterValue(boxes={"r": "u:$5$hidden"})})
    error = refused(use)
    assert "user u" in str(error)
    assert "hidden" not in str(error)


def test_third_party_plugin_is_found_by_entry_point() -> None:
    registry = found("foreign", f"{__name__}:Foreign")
    assert "foreign" in registry.names
    assert isinstance(registry.make(PluginUse(name="foreign"), PluginServices(), unsealed), Foreign)


@pytest.mark.parametrize(
    ("name", "place", "told"),
    [
        ("not-one", f"{__name__}:NotOne", "no subclass"),
        ("other", f"{__name__}:Foreign", "`name` is not 'other'"),
        ("gone", "headgate.nowhere:Plugin", "cannot be used"),
    ],
)
def test_third_party_plugin_that_cannot_be_loaded_costs_its_users_only(name, place, told) -> None:
    registry = found(name, place)
    assert told in str(refused(PluginUse(name=name), registry))
    assert registry.find("cors").name == "cors"


def test_built_in_name_is_not_taken_over() -> None:
    registry = found("cors", f"{__name__}:Foreign")
    assert registry.find("cors") is REGISTRY.find("cors")


def test_route_without_plugins_has_no_chain() -> None:
    assert REGISTRY.chain((), PluginServices(), unsealed) is None


def test_order_of_a_use_goes_before_the_plugins_own() -> None:
    uses = [PluginUse(name="cors"), PluginUse(name="gzip", order=5000)]
    chain = REGISTRY.chain(uses, PluginServices(), unsealed)
    assert chain is not None
    assert chain.names == ("gzip", "cors")


BASE = PluginServices()
CORS = PluginUse(name="cors", config={"max_age": 7})
LIMIT = PluginUse(name="limit-req", config={"rate": 1, "burst": 1, "key": "remote_addr"})


def parts_of(
    *uses: PluginUse, owner: str = "a/one", scope: str = "host|one", base: PluginServices = BASE
) -> list[Plugin[PluginConfig]]:
    services = replace(base, scope=scope, owner=owner)
    return [plugin for _, plugin in finish(REGISTRY.parts(uses, services, unsealed))]


def test_plugins_that_keep_nothing_of_a_route_are_shared_beside_others_that_do() -> None:
    first, first_limit = parts_of(CORS, LIMIT)
    second, second_limit = parts_of(CORS, LIMIT, scope="host|two")
    assert first is second
    assert first.services.scope == ""
    assert first_limit is not second_limit
    assert (first_limit.services.scope, second_limit.services.scope) == ("host|one", "host|two")


def test_plugins_that_differ_are_not_shared() -> None:
    held = [
        *parts_of(CORS),
        *parts_of(PluginUse(name="cors", config={"max_age": 8})),
        *parts_of(CORS.model_copy(update={"is_nested": True})),
        *parts_of(CORS, base=PluginServices()),
    ]
    assert len({id(plugin) for plugin in held}) == 4
    assert [plugin.is_nested for plugin in held] == [False, False, True, False]


def test_plugins_that_ask_for_their_owner_are_shared_by_routes_of_one_owner_alone() -> None:
    key = PluginUse(name="key-auth", config={})
    held = [*parts_of(key), *parts_of(key), *parts_of(key, owner="a/two")]
    assert held[0] is held[1]
    assert held[0] is not held[2]
    assert held[2].services.owner == "a/two"


def test_one_route_that_says_the_same_twice_has_two_plugins() -> None:
    first, second = parts_of(CORS, CORS)
    assert first is not second


def test_shared_plugins_outlive_being_forgotten() -> None:
    kept = parts_of(CORS)[0]
    for age in range(5_000):
        parts_of(PluginUse(name="cors", config={"max_age": 1_000 + age}))
    assert kept.services.scope == ""
    assert parts_of(CORS)[0] is not kept
