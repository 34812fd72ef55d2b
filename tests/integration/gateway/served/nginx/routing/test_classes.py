"""Which Ingresses are served: by their class, by watch-ingress-without-class, by disable-catch-all and other flags.

Files there: `test/e2e/settings/ingress_class.go`, `disable_catch_all.go`, `test/e2e/disableleaderelection`.
"""

from typing import Any

import pytest

from fakes.translator.applied import Applied, World, world
from fakes.translator.deltas import ingress_class
from fakes.translator.nginx import nginx_ingress
from headgate.translator.world.settings import NginxSettings, TranslationSettings

CLASS_ANNOTATION = "kubernetes.io/ingress.class"
OTHER = ingress_class("test-new-ingress-class", "k8s.io/other-class")
OURS = ingress_class("ic-shop", "k8s.io/ingress-nginx")
ADOPTED = TranslationSettings(
    controller_names=frozenset({"k8s.io/ingress-nginx"}), class_names=frozenset({"headgate", "nginx"})
)


def of(name: str, annotated: str | None = None, **more: Any) -> Any:
    """Return an Ingress for a host of its name; `annotated` is the class in its annotation."""
    made = nginx_ingress(name, host=f"{name}.example", **more)
    made["metadata"]["annotations"] = {CLASS_ANNOTATION: annotated} if annotated is not None else {}
    return made


async def statuses(proxy: Applied, *names: str) -> list[int]:
    return [await proxy.status(host=f"{name}.example") for name in names]


async def test_another_class_in_the_annotation_is_none_of_ours() -> None:
    async with world("one", settings=ADOPTED) as made:
        made.proxy.apply(OURS, OTHER, of("foo", "testclass"), of("bar", "nginx"))
        assert await statuses(made.proxy, "foo", "bar") == [404, 200]


async def test_class_of_another_controller_is_none_of_ours() -> None:
    async with world("one", settings=ADOPTED) as made:
        made.proxy.apply(OURS, OTHER, of("foo", class_name="test-new-ingress-class"), of("bar", class_name="ic-shop"))
        assert await statuses(made.proxy, "foo", "bar") == [404, 200]


async def test_class_may_be_in_the_annotation_or_in_the_field() -> None:
    async with world("one", settings=ADOPTED) as made:
        made.proxy.apply(OURS, OTHER, of("foo", "nginx"), of("bar", class_name="ic-shop"))
        assert await statuses(made.proxy, "foo", "bar") == [200, 200]


async def test_field_goes_before_the_annotation() -> None:
    async with world("one", settings=ADOPTED) as made:
        made.proxy.apply(OURS, OTHER, of("foo", "nginx", class_name="test-new-ingress-class"))
        made.proxy.apply(of("bar", "testclass", class_name="ic-shop"))
        assert await statuses(made.proxy, "foo", "bar") == [404, 200]


async def test_ingress_without_a_class_is_none_of_ours_where_there_are_classes() -> None:
    async with world("one", settings=ADOPTED) as made:
        made.proxy.apply(OURS, OTHER, of("foo"), of("bar", class_name="ic-shop"))
        assert await statuses(made.proxy, "foo", "bar") == [404, 200]


async def test_ingress_that_loses_its_class_is_served_no_longer() -> None:
    async with world("one", settings=ADOPTED) as made:
        made.proxy.apply(OURS, OTHER, of("foo", "nginx"), of("bar", class_name="ic-shop"))
        assert await statuses(made.proxy, "foo", "bar") == [200, 200]
        made.proxy.apply(of("foo"), of("bar"))
        assert await statuses(made.proxy, "foo", "bar") == [404, 404]


async def test_ingress_that_gets_a_class_is_served() -> None:
    async with world("one", settings=ADOPTED) as made:
        made.proxy.apply(OURS, OTHER, of("foo"), of("bar"))
        assert await statuses(made.proxy, "foo", "bar") == [404, 404]
        made.proxy.apply(of("foo", "nginx"), of("bar", class_name="ic-shop"))
        assert await statuses(made.proxy, "foo", "bar") == [200, 200]


async def test_class_may_move_between_the_annotation_and_the_field() -> None:
    async with world("one", settings=ADOPTED) as made:
        made.proxy.apply(OURS, OTHER, of("foo", "nginx"), of("bar", class_name="ic-shop"))
        assert await statuses(made.proxy, "foo", "bar") == [200, 200]
        made.proxy.apply(of("foo", class_name="ic-shop"), of("bar", "nginx"))
        assert await statuses(made.proxy, "foo", "bar") == [200, 200]


async def test_ingresses_follow_their_class_when_it_is_made_changed_and_deleted() -> None:
    async with world("one", settings=ADOPTED) as made:
        made.proxy.apply(OTHER, of("bar", class_name="ic-shop"))
        assert await statuses(made.proxy, "bar") == [404]
        made.proxy.apply(OURS)
        assert await statuses(made.proxy, "bar") == [200]
        made.proxy.apply(ingress_class("ic-shop", "k8s.io/other-class"))
        assert await statuses(made.proxy, "bar") == [404]
        made.proxy.apply(OURS)
        made.proxy.delete(OURS)
        assert await statuses(made.proxy, "bar") == [404]


OTHERS = TranslationSettings(
    controller_names=frozenset({"k8s.io/other-class"}), class_names=frozenset({"headgate", "testclass"})
)


async def test_class_and_controller_have_the_names_that_settings_give() -> None:
    async with world("one", settings=OTHERS) as made:
        made.proxy.apply(OURS, OTHER)
        made.proxy.apply(of("bar"), of("foo", "testclass"), of("baz", class_name="test-new-ingress-class"))
        made.proxy.apply(of("theirs", class_name="ic-shop"), of("default", "nginx"))
        assert await statuses(made.proxy, "foo", "baz", "bar", "theirs", "default") == [200, 200, 404, 404, 404]


async def test_ingresses_without_a_class_are_served_by_a_setting_and_those_of_others_are_not() -> None:
    watching = TranslationSettings(controller_names=ADOPTED.controller_names, watch_without_class=True)
    async with world("one", settings=watching) as made:
        made.proxy.apply(OURS, OTHER, of("bar"), of("foo", "testclass123"))
        made.proxy.apply(of("baz", class_name="test-new-ingress-class"))
        assert await statuses(made.proxy, "bar", "foo", "baz") == [200, 404, 404]


async def test_class_is_ours_by_its_name_whatever_its_controller_by_a_setting() -> None:
    names = frozenset({"test-new-ingress-class"})
    by_name = TranslationSettings(ADOPTED.controller_names, names, class_by_name=True)
    async with world("one", settings=by_name) as made:
        made.proxy.apply(OURS, OTHER)
        made.proxy.apply(of("bar", class_name="test-new-ingress-class"), of("foo", class_name="ic-shop"))
        made.proxy.apply(of("baz", "testclass123"), of("annotated", "test-new-ingress-class"))
        assert await statuses(made.proxy, "bar", "foo", "baz", "annotated") == [200, 200, 404, 200]


@pytest.mark.parametrize(("annotated", "class_name", "status"), [("testclass", None, 200), (None, "ic-shop", 404)])
async def test_without_any_ingress_class_the_names_of_settings_count(
    annotated: str | None, class_name: str | None, status: int
) -> None:
    async with world("one", settings=OTHERS) as made:
        made.proxy.apply(of("foo", annotated, **({"class_name": class_name} if class_name else {})))
        assert await statuses(made.proxy, "foo") == [status]


async def body_limit(made: World, name: str) -> int:
    """Return the status of a request with a body that is too large for ingress-nginx, without annotations."""
    return (await made.proxy.post(b"x" * ((1 << 20) + 1), host=f"{name}.example")).status


async def test_ingresses_of_all_classes_of_ingress_nginx_are_read_as_it_reads_them() -> None:
    controllers = frozenset({"k8s.io/internal-ingress-nginx", "apisix.apache.org/apisix-ingress-controller"})
    settings = TranslationSettings(controllers, frozenset({"nginx-public", "plain"}))
    async with world("one", settings=settings) as made:
        made.proxy.apply(ingress_class("internal", "k8s.io/internal-ingress-nginx"))
        made.proxy.apply(ingress_class("apisix", "apisix.apache.org/apisix-ingress-controller"))
        made.proxy.apply(of("foo", class_name="internal"), of("bar", "nginx-public"))
        made.proxy.apply(of("baz", class_name="apisix"), of("plain", "plain"))
        assert [await body_limit(made, name) for name in ("foo", "bar", "baz", "plain")] == [413, 413, 200, 200]


@pytest.mark.parametrize(("without_class", "by_name"), [(True, False), (False, True)])
async def test_so_are_those_that_a_setting_adds(without_class: bool, by_name: bool) -> None:
    settings = TranslationSettings(
        ADOPTED.controller_names, frozenset({"other"}), class_by_name=by_name, watch_without_class=without_class
    )
    async with world("one", settings=settings) as made:
        made.proxy.apply(OURS, ingress_class("other", "k8s.io/other"))
        made.proxy.apply(of("foo", **({} if without_class else {"class_name": "other"})))
        assert await body_limit(made, "foo") == 413


# disable-catch-all

NO_CATCH_ALL = TranslationSettings(class_names=frozenset({"nginx"}), nginx=NginxSettings(disable_catch_all=True))
BACKEND = {"service": {"name": "one", "port": {"number": 80}}}


def catch_all(name: str = "catch-all", *rules: Any) -> Any:
    spec = {"defaultBackend": BACKEND} | ({"rules": list(rules)} if rules else {})
    return nginx_ingress(name, spec=spec, class_name="nginx")


def ruled(name: str = "foo") -> Any:
    return nginx_ingress(name, host="foo.example", class_name="nginx")


async def test_ingress_with_a_default_backend_is_left_out_by_a_setting_and_others_are_not() -> None:
    async with world("one", settings=NO_CATCH_ALL) as made:
        made.proxy.apply(catch_all(), ruled())
        assert await statuses(made.proxy, "foo", "unknown") == [200, 404]
        assert made.proxy.problems(catch_all()) == ["CatchAllDisabled"]
        assert made.proxy.problems(ruled()) == []


async def test_ingress_with_a_default_backend_and_rules_is_left_out_with_its_rules() -> None:
    async with world("one", settings=NO_CATCH_ALL) as made:
        made.proxy.apply(catch_all("foo", *ruled()["spec"]["rules"]))
        assert await statuses(made.proxy, "foo", "unknown") == [404, 404]


async def test_ingress_that_is_left_out_says_nothing_of_its_host() -> None:
    left_out = catch_all("all", *ruled()["spec"]["rules"])
    left_out["metadata"]["annotations"] = {
        "nginx.ingress.kubernetes.io/use-regex": "true",
        "nginx.ingress.kubernetes.io/server-alias": "alias.example",
    }
    async with world("one", settings=NO_CATCH_ALL) as made:
        made.proxy.apply(left_out, nginx_ingress("foo", host="foo.example", path="/a", class_name="nginx"))
        assert [await made.proxy.status(path, host="foo.example") for path in ("/a", "/ab")] == [200, 404]
        assert await made.proxy.status("/a", host="alias.example") == 404


async def test_ingress_that_becomes_a_catch_all_is_served_no_longer() -> None:
    async with world("one", settings=NO_CATCH_ALL) as made:
        made.proxy.apply(ruled())
        assert await statuses(made.proxy, "foo") == [200]
        made.proxy.apply(catch_all("foo"))
        assert await statuses(made.proxy, "foo") == [404]
        made.proxy.apply(ruled())
        assert await statuses(made.proxy, "foo") == [200]


async def test_without_the_setting_a_default_backend_takes_all_hosts() -> None:
    async with world("one") as made:
        made.proxy.apply(catch_all("all"))
        assert await statuses(made.proxy, "unknown") == [404]
        made.proxy.apply(ingress_class("nginx", "headgate.dev/ingress-controller"))
        assert await statuses(made.proxy, "unknown") == [200]


# paths of several hosts


async def test_each_host_has_the_paths_of_its_own_ingress_alone() -> None:
    async with world("one") as made:
        made.proxy.apply(nginx_ingress("first", path="/foo", host="first.example"))
        made.proxy.apply(nginx_ingress("second", path="/ping", host="second.example"))
        for path, hosts in (("/foo", [200, 404]), ("/ping", [404, 200]), ("/bar", [404, 404]), ("/pong", [404, 404])):
            assert [await made.proxy.status(path, host=f"{name}.example") for name in ("first", "second")] == hosts
