"""Permissions that Keycloak decides about, by the cases of Apache APISIX (t/plugin/authz-keycloak*.t).

A server in the test stands for Keycloak.
"""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any
from urllib.parse import parse_qsl

import pytest
from aiohttp import web

from headgate.common.plugins.checking import check_use
from headgate.common.plugins.errors import PluginFault
from headgate.common.table import PluginUse
from headgate.gateway.plugins.interface import Request, Response
from unit.gateway.plugins.running import Clock, asked, chain, request
from unit.gateway.plugins.service import Seen, Service, running

RULES = {"course_resource": "good", "course_resource#view": "good", "res0": "good", "course_resource#GET": "good"}
DENIED = {"error": "access_denied", "error_description": "not_authorized"}


class FakeKeycloak:
    """Knows one user with the token `good`, and one client."""

    def __init__(self) -> None:
        self.service = Service()
        self.clock = Clock()
        self.logins = 0

    @property
    def forms(self) -> list[list[tuple[str, str]]]:
        return [parse_qsl(seen.body.decode()) for seen in self.service.seen if seen.method == "POST"]

    def serve(self, seen: Seen) -> web.StreamResponse:
        if seen.target == "/uma2":
            url = self.service.url
            return web.json_response({"token_endpoint": f"{url}/token", "resource_registration_endpoint": f"{url}/res"})
        if seen.target.startswith("/res"):
            if seen.headers.get("Authorization") != f"Bearer own{self.logins}":
                return web.json_response({}, status=401)
            return web.json_response(["res0"] if "%2Fcourse" in seen.target else [])
        form = parse_qsl(seen.body.decode())
        return self.token(dict(form), seen, [value for name, value in form if name == "permission"])

    def token(self, form: dict[str, str], seen: Seen, permissions: list[str]) -> web.StreamResponse:
        if form["grant_type"] == "client_credentials":
            self.logins += 1
            return web.json_response({"access_token": f"own{self.logins}", "expires_in": 60})
        if form["grant_type"] == "password":
            is_known = (form["username"], form["password"], form["client_secret"]) == ("jack", "pass", "geheim")
            return web.json_response({"access_token": "good"} if is_known else {}, status=200 if is_known else 401)
        token = seen.headers["Authorization"].split(" ")[1]
        if token not in ("good", "other"):
            return web.json_response({"error": "HTTP 401 Unauthorized"}, status=401)
        if not permissions or any(RULES.get(permission) != token for permission in permissions):
            return web.json_response(DENIED, status=403)
        return web.json_response({"result": True})

    async def ask(self, given: Request, **config: Any) -> Response | None:
        services = replace(self.service.services, clock=self.clock)
        written = {"client_id": "course_management", "discovery": f"{self.service.url}/uma2", **config}
        return await asked(chain(("authz-keycloak", written), services=services), given)


@pytest.fixture
async def keycloak() -> AsyncIterator[FakeKeycloak]:
    fake = FakeKeycloak()
    async with running(fake.serve) as service:
        fake.service = service
        yield fake


@asynccontextmanager
async def no_keycloak() -> AsyncIterator[FakeKeycloak]:
    fake = FakeKeycloak()
    async with running(fake.serve) as service:
        fake.service = Service("http://127.0.0.1:1", [], service.services)
        yield fake


def with_token(token: str, target: str = "/course/foo", **given: Any) -> Request:
    return request(target, [("Authorization", token)], **given)


def verdict(answer: Response | None) -> int:
    return 200 if answer is None else answer.status


@pytest.mark.parametrize(
    ("token", "config", "status"),
    [
        ("Bearer good", {"permissions": ["course_resource"]}, 200),
        ("good", {"permissions": ["course_resource#view"]}, 200),
        ("bearer other", {"permissions": ["course_resource"]}, 403),
        ("Bearer wrong", {"permissions": ["course_resource"]}, 401),
        ("Bearer good", {"permissions": ["course_resource", "none"]}, 403),
        ("Bearer good", {"permissions": ["course_resource"], "http_method_as_scope": True}, 200),
        ("Bearer good", {}, 403),
        ("Bearer good", {"policy_enforcement_mode": "PERMISSIVE"}, 403),
        ("Bearer other", {"permissions": ["course_resource"], "access_denied_redirect_uri": "http://x/no"}, 307),
        ("Bearer good", {"access_denied_redirect_uri": "http://x/no"}, 307),
        ("Bearer wrong", {"permissions": ["course_resource"], "access_denied_redirect_uri": "http://x/no"}, 401),
    ],
)
async def test_the_server_decides(keycloak, token, config, status) -> None:
    answer = await keycloak.ask(with_token(token), **config)
    assert verdict(answer) == status
    if status == 307:
        assert answer.headers.get("Location") == "http://x/no"
    if status == 403:
        assert json.loads(answer.body) == DENIED


async def test_it_is_told_the_client_and_the_permissions(keycloak) -> None:
    config = {"permissions": ["course_resource", "course_resource#view"], "http_method_as_scope": True}
    await keycloak.ask(with_token("Bearer good", method="DELETE"), **config)
    assert keycloak.forms == [
        [
            ("grant_type", "urn:ietf:params:oauth:grant-type:uma-ticket"),
            ("audience", "course_management"),
            ("response_mode", "decision"),
            ("permission", "course_resource#DELETE"),
            ("permission", "course_resource#view, DELETE"),
        ]
    ]


async def test_a_request_without_token_is_refused(keycloak) -> None:
    answer = await keycloak.ask(request("/"), permissions=["course_resource"])
    assert (answer.status, json.loads(answer.body)) == (401, {"message": "Missing JWT token in request"})
    assert keycloak.service.seen == []


async def test_resources_are_looked_up_by_path_with_a_token_of_the_client(keycloak) -> None:
    config = {"lazy_load_paths": True, "client_secret": "geheim"}
    assert verdict(await keycloak.ask(with_token("Bearer good"), **config)) == 200
    assert verdict(await keycloak.ask(with_token("Bearer good", "/other"), **config)) == 403
    targets = [seen.target for seen in keycloak.service.seen]
    assert targets[:3] == ["/uma2", "/token", "/res?uri=%2Fcourse%2Ffoo&matchingUri=true"]


async def test_document_and_token_are_kept(keycloak) -> None:
    config = {"lazy_load_paths": True, "client_secret": "geheim", "client_id": "course_management"}
    services = replace(keycloak.service.services, clock=keycloak.clock)
    plugins = chain(("authz-keycloak", {**config, "discovery": f"{keycloak.service.url}/uma2"}), services=services)
    for _ in range(2):
        assert await asked(plugins, with_token("Bearer good")) is None
    assert keycloak.logins == 1
    keycloak.clock.now += 59
    assert await asked(plugins, with_token("Bearer good")) is None
    assert keycloak.logins == 2
    assert [seen.target for seen in keycloak.service.seen].count("/uma2") == 1


@pytest.mark.parametrize(
    ("form", "status", "expected"),
    [
        (b"username=jack&password=pass", 200, {"access_token": "good"}),
        (b"username=jack&password=no", 401, {"message": "Could not decode JSON from response."}),
        (b"password=pass", 422, {"message": "username is missing."}),
        (b"username=jack", 422, {"message": "password is missing."}),
    ],
)
async def test_users_get_tokens_at_a_path(keycloak, form, status, expected) -> None:
    headers = [("Content-Type", "application/x-www-form-urlencoded")]
    given = request("/api/token", headers, method="POST", body=form, content_length=len(form))
    path = {"password_grant_token_generation_incoming_uri": "/api/token"}
    answer = await keycloak.ask(given, client_secret="geheim", **path)
    assert (answer.status, json.loads(answer.body)) == (status, expected)


async def test_a_server_that_is_not_there_lets_nobody_in() -> None:
    async with no_keycloak() as keycloak:
        assert verdict(await keycloak.ask(with_token("Bearer good"), permissions=["course_resource"])) == 503


@pytest.mark.parametrize(
    ("config", "field"),
    [
        ({"discovery": "https://x/uma2"}, "config.client_id"),
        ({"client_id": "a"}, "config"),
        ({"client_id": "a", "token_endpoint": "https://x/token", "lazy_load_paths": True}, "config"),
        ({"client_id": "a", "discovery": "x"}, "config.discovery"),
        ({"client_id": "a", "discovery": "https://x/uma2", "timeout": 10}, "config.timeout"),
    ],
)
def test_a_wrong_configuration_is_refused_at_its_field(config, field) -> None:
    with pytest.raises(PluginFault) as fault:
        check_use(PluginUse(name="authz-keycloak", config=config))
    assert fault.value.field == field
