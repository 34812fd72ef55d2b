"""Headers from ConfigMaps: `test/e2e/annotations/customheaders.go`, `test/e2e/settings/{add,proxy-set}-headers`.

What ConfigMaps and Secrets of other namespaces may do is tested here too.
"""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from fakes.translator.applied import World, secret, world
from fakes.translator.nginx import nginx_ingress


def config_map(name: str, namespace: str = "default", **data: str) -> Any:
    named = {key.replace("_", "-"): value for key, value in data.items()}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": namespace}, "data": named}


def options(**data: str) -> Any:
    return config_map("ingress-nginx-controller", "ingress-nginx", **data)


@pytest.fixture
async def one() -> AsyncIterator[World]:
    """A proxy before a Service `one`."""
    async with world("one") as made:
        yield made


CUSTOM = {"custom_headers": "default/headers"}


async def test_answers_have_no_more_headers_without_the_annotation(one: World) -> None:
    one.proxy.apply(
        config_map("headers", My_Custom_Header="42"), options(global_allowed_response_headers="My-Custom-Header")
    )
    one.proxy.apply(nginx_ingress(enable_access_log="true"))
    got = await one.proxy.get()
    assert (got.status, got["my-custom-header"]) == (200, "")


async def test_headers_that_are_allowed_are_added_to_answers(one: World) -> None:
    one.proxy.apply(options(global_allowed_response_headers="My-Custom-Header,My-Custom-Header-Dollar"))
    named = {"My_Custom_Header": "42", "My_Custom_Header_Dollar": "$remote_addr and ${host} for $5"}
    one.proxy.apply(config_map("headers", **named), nginx_ingress(**CUSTOM))
    got = await one.proxy.get()
    assert (got.status, got["my-custom-header"]) == (200, "42")
    assert got["my-custom-header-dollar"] == "$remote_addr and ${host} for $5"
    one.proxy.apply(config_map("headers", My_Custom_Header="43"))
    assert (await one.proxy.get())["my-custom-header"] == "43"


@pytest.mark.parametrize(
    "data",
    [None, {"X-Other": "1"}, {"My Custom": "1"}, {"My-Custom-Header": "a\nb"}, {"Content-Length": "1"}],
)
async def test_a_config_map_that_cannot_be_used_closes_the_paths(one: World, data: dict[str, str] | None) -> None:
    one.proxy.apply(options(global_allowed_response_headers="My-Custom-Header"), nginx_ingress(**CUSTOM))
    if data is not None:
        one.proxy.apply({**config_map("headers"), "data": data})
    assert await one.proxy.status() == 503
    one.proxy.apply(config_map("headers", My_Custom_Header="42"))
    assert await one.proxy.status() == 200


async def test_headers_of_all_are_added_to_answers_and_to_requests(one: World) -> None:
    one.proxy.apply(config_map("answers", "ops", X_Added="yes"), config_map("requests", "ops", X_Scheme="is $scheme"))
    one.proxy.apply(options(add_headers="ops/answers", proxy_set_headers="ops/requests"))
    one.proxy.apply(nginx_ingress(enable_access_log="true"))
    assert (await one.proxy.get(X_Scheme="forged"))["x-added"] == "yes"
    head = one.servers["one"].heads[-1]
    assert b"\r\nX-Scheme: is http\r\n" in head
    assert b"forged" not in head


async def test_config_maps_of_all_that_are_missing_are_left_out(one: World) -> None:
    one.proxy.apply(options(add_headers="ops/answers"), nginx_ingress(enable_access_log="true"))
    assert await one.proxy.status() == 200


async def test_secrets_and_config_maps_of_other_namespaces_need_the_operators_leave(one: World) -> None:
    people = secret("people", auth="jo:{PLAIN}x")
    people["metadata"]["namespace"] = "other"
    one.proxy.apply(people, config_map("headers", "other", X_Own="1"))
    one.proxy.apply(options(global_allowed_response_headers="X-Own"))
    one.proxy.apply(nginx_ingress(auth_type="basic", auth_secret="other/people", custom_headers="other/headers"))
    assert await one.proxy.status() == 503
    one.proxy.apply(options(global_allowed_response_headers="X-Own", allow_cross_namespace_resources="true"))
    got = await one.proxy.get()
    assert (got.status, got["x-own"]) == (401, "1")
