"""Ingresses of namespaces without the labels of the setting are others' (`settings/namespace_selector.go`)."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from fakes.translator.applied import World, world
from fakes.translator.deltas import endpoint_slice, service
from fakes.translator.nginx import nginx_ingress
from headgate.translator.dialects.ingress.document import class_name
from headgate.translator.objects.ownership import ByClass
from headgate.translator.settings import TranslatorSettings
from headgate.translator.world.settings import NginxSettings, TranslationSettings

SETTINGS = TranslationSettings(nginx=NginxSettings(namespace_selector="foo=bar"))


def namespace(name: str, **labels: str) -> Any:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}


def elsewhere(**more: Any) -> Any:
    return nginx_ingress("guest", host="other.example", to="two", namespace="guests", **more)


@pytest.fixture
async def two() -> AsyncIterator[World]:
    """A proxy before an Ingress in each of two namespaces, of which only `default` has the label."""
    async with world("one", "two", settings=SETTINGS) as made:
        made.proxy.apply(
            service("two", namespace="guests"),
            endpoint_slice("two", "127.0.0.1", namespace="guests", port=made.port("two")),
            namespace("default", foo="bar"),
            namespace("guests", foo="other"),
            nginx_ingress(),
            elsewhere(),
        )
        yield made


async def test_only_ingresses_of_selected_namespaces_are_served(two: World) -> None:
    assert await two.proxy.status() == 200
    assert await two.proxy.status(host="other.example") == 404


async def test_labels_that_change_take_and_leave_a_namespace(two: World) -> None:
    two.proxy.apply(namespace("guests", foo="bar"))
    assert await two.proxy.status(host="other.example") == 200
    two.proxy.apply(namespace("guests"))
    assert await two.proxy.status(host="other.example") == 404
    two.proxy.delete(namespace("default"))
    assert await two.proxy.status() == 404


async def test_a_namespace_that_is_not_selected_says_nothing_of_hosts(two: World) -> None:
    two.proxy.apply(elsewhere(server_alias="alias.example"))
    assert await two.proxy.status(host="alias.example") == 404


def test_a_selector_that_is_none_stops_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADGATE_NGINX_WATCH_NAMESPACE_SELECTOR", "foo=bar=baz")
    with pytest.raises(ValueError, match="selector of labels"):
        TranslatorSettings()


def test_whoever_asks_hears_that_it_is_the_namespace_and_not_the_class() -> None:
    settings = TranslationSettings(class_names=frozenset({"nginx"}), nginx=NginxSettings(namespace_selector="foo=bar"))
    ownership = ByClass(class_name, by_namespace=True)
    assert "labels foo=bar" in ownership.why_not(nginx_ingress(class_name="nginx"), [], settings)
    assert "'other'" in ownership.why_not(nginx_ingress(class_name="other"), [], settings)
