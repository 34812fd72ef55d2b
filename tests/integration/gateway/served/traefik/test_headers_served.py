"""The middleware `headers`, from manifests to the wire."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from fakes.gateway.served import Got
from fakes.translator.applied import World, world
from fakes.translator.traefik import asked, middleware, route, rule, used


@pytest.fixture
async def web() -> AsyncIterator[World]:
    """A proxy before a Service `web`."""
    async with world("web") as made:
        yield made


async def test_headers_of_requests_and_answers_are_set_and_removed(web: World) -> None:
    used(
        web,
        headers={
            "customRequestHeaders": {"X-Set": "costs $remote_addr", "X-Gone": ""},
            "customResponseHeaders": {"X-Answer": "yes", "Server": ""},
            "frameDeny": True,
            "contentTypeNosniff": True,
            "browserXssFilter": True,
            "contentSecurityPolicy": "default-src 'self'",
            "referrerPolicy": "same-origin",
            "stsSeconds": 60,
            "stsIncludeSubdomains": True,
            "forceSTSHeader": True,
        },
    )
    head = await asked(web, X_Gone="here")
    assert "\r\nx-set: costs $remote_addr\r\n" in head
    assert "x-gone" not in head
    got = await web.proxy.get()
    assert (got["x-answer"], got["x-frame-options"], got["x-content-type-options"]) == ("yes", "DENY", "nosniff")
    assert (got["x-xss-protection"], got["referrer-policy"]) == ("1; mode=block", "same-origin")
    assert got["content-security-policy"] == "default-src 'self'"
    assert got["strict-transport-security"] == "max-age=60; includeSubDomains"


async def test_a_host_among_the_request_headers_is_sent_instead_of_the_clients(web: World) -> None:
    used(web, headers={"customRequestHeaders": {"Host": "inner.test"}})
    assert "\r\nhost: inner.test\r\n" in await asked(web)


async def test_cors(web: World) -> None:
    used(
        web,
        headers={
            "accessControlAllowMethods": ["GET", "PUT"],
            "accessControlAllowHeaders": ["*"],
            "accessControlAllowOriginList": ["https://a.test"],
            "accessControlMaxAge": 100,
        },
    )
    preflight = await web.proxy.get(method="OPTIONS", Origin="https://a.test", Access_Control_Request_Method="PUT")
    assert preflight.status == 200
    assert preflight["access-control-allow-methods"] == "GET,PUT"
    assert preflight["access-control-allow-origin"] == "https://a.test"
    assert preflight["access-control-max-age"] == "100"
    assert (await web.proxy.get(Origin="https://b.test"))["access-control-allow-origin"] == ""
    answered = await web.proxy.get(Origin="https://a.test")
    assert (answered["access-control-allow-origin"], answered["access-control-allow-methods"]) == ("https://a.test", "")


def cors_headers(got: Got) -> dict[str, str]:
    names = ("allow-credentials", "allow-headers", "allow-methods", "allow-origin", "expose-headers", "max-age")
    return {name: got[f"access-control-{name}"] for name in names if got[f"access-control-{name}"]}


A, B = "https://a.test", "https://b.test"


@pytest.mark.parametrize(
    ("spec", "origin", "method", "said"),
    [
        ({"OriginList": [A]}, B, "OPTIONS", {}),
        ({"OriginList": [A], "Methods": ["GET"]}, B, "OPTIONS", {"allow-methods": "GET"}),
        ({"OriginList": ["*"], "Headers": ["*"]}, A, "OPTIONS", {"allow-origin": "*", "allow-headers": "*"}),
        ({"OriginList": ["*"]}, "", "GET", {"allow-origin": "*"}),
        (
            {"OriginList": ["*"], "Headers": ["*"], "Methods": ["*"], "Credentials": True},
            A,
            "OPTIONS",
            {"allow-origin": A, "allow-headers": "X-Q", "allow-methods": "PUT", "allow-credentials": "true"},
        ),
        ({"OriginListRegex": ["^https://.*[.]test$"]}, B, "GET", {"allow-origin": B}),
        ({"OriginList": [A], "Credentials": True}, B, "GET", {"allow-credentials": "true"}),
        ({"Headers": ["X-Own"]}, A, "OPTIONS", {"allow-headers": "X-Own"}),
        ({"Headers": ["X-Own"]}, A, "GET", {}),
    ],
)
async def test_cors_answers_preflights_by_itself(
    web: World, spec: Any, origin: str, method: str, said: dict[str, str]
) -> None:
    used(web, headers={f"accessControlAllow{name}": value for name, value in spec.items()})
    asked = {"Access_Control_Request_Method": "PUT", "Access_Control_Request_Headers": "X-Q"}
    got = await web.proxy.get(method=method, **({"Origin": origin} if origin else {}), **asked)
    assert (got.status, cors_headers(got)) == (200, said)
    assert len(web.servers["web"].heads) == (method == "GET")


async def test_cors_says_on_demand_that_answers_depend_on_the_origin(web: World) -> None:
    used(web, headers={"accessControlMaxAge": 0, "addVaryHeader": True})
    assert (await web.proxy.get(Origin=A))["vary"] == "Origin"
    preflight = await web.proxy.get(method="OPTIONS", Origin=A, Access_Control_Request_Method="PUT")
    assert (preflight["access-control-max-age"], preflight["vary"]) == ("0", "")
    assert await web.proxy.status(method="OPTIONS", Origin=A) == 200
    assert len(web.servers["web"].heads) == 2


async def test_a_custom_header_goes_before_one_for_browsers(web: World) -> None:
    used(web, headers={"customResponseHeaders": {"x-frame-options": "SAMEORIGIN"}, "frameDeny": True})
    assert (await web.proxy.get())["x-frame-options"] == "SAMEORIGIN"


@pytest.mark.parametrize(
    ("spec", "headers", "status"),
    [
        ({}, {}, 500),
        ({}, {"host": "B.com"}, 200),
        ({}, {"host": "b.com:81"}, 500),
        ({"isDevelopment": True}, {}, 200),
        ({"hostsProxyHeaders": ["X-H"]}, {"X_H": "b.com"}, 200),
        ({"hostsProxyHeaders": ["X-H"]}, {"X_H": "c.com", "host": "b.com"}, 500),
        ({"hostsProxyHeaders": ["X-G", "X-H"]}, {"X_H": "b.com"}, 200),
    ],
)
async def test_hosts_are_allowed(web: World, spec: Any, headers: dict[str, str], status: int) -> None:
    listed = middleware("m", headers={"allowedHosts": ["b.com"], **spec})
    web.proxy.apply(listed, route(rule("PathPrefix(`/`)", middlewares=["m"])))
    assert await web.proxy.status(**headers) == status


async def test_a_header_stands_for_https(web: World) -> None:
    used(web, headers={"stsSeconds": 60, "sslProxyHeaders": {"X-Over": "https"}})
    assert (await web.proxy.get(X_Over="https"))["strict-transport-security"] == "max-age=60"
    assert (await web.proxy.get(X_Over="http"))["strict-transport-security"] == ""
