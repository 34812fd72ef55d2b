import pytest
from aiohttp import web

from headgate.gateway.plugins.interface import Headers, PluginServices, Response
from headgate.gateway.plugins.interface.errors import PluginRefused
from unit.gateway.plugins.running import answered, chain, exchanged, request
from unit.gateway.plugins.service import running, sending

ASKED = [("Accept", "application/json")]


async def test_page_of_the_service_replaces_the_error() -> None:
    def page(seen):
        return web.Response(status=404, text="custom", headers={"X-Page": "1"})

    async with running(page) as service:
        config = {"uri": service.url, "statuses": [404, "500-503"], "headers": {"X-Namespace": "default"}}
        plugins = chain(("error-page", config), services=service.services)
        answer = await answered(
            plugins, request("/p?q=1", ASKED), Response(503, Headers([("Retry-After", "3")])), b"bad"
        )
        told = service.seen[0]
    assert (answer.status, answer.body) == (404, b"custom")
    assert answer.headers.get("X-Page") == "1"
    assert answer.headers.get("Retry-After") == "3"
    names = ("X-Code", "X-Format", "X-Original-URI", "X-Request-ID", "X-Namespace")
    assert [told.headers[name] for name in names] == ["503", "application/json", "/p?q=1", "id-1", "default"]
    assert told.method == "GET"


async def test_status_may_stay_and_the_path_may_tell_it() -> None:
    async with running(lambda seen: web.Response(text=seen.target)) as service:
        config = {"uri": service.url, "statuses": ["400-599"], "path": "/{status}.html?u={url}", "keep_status": True}
        plugins = chain(("error-page", config), services=service.services)
        answer = await answered(plugins, request("/p?q=1&r"), Response(502))
    assert (answer.status, answer.body) == (502, b"/502.html?u=/p%3Fq=1%26r")


async def test_other_statuses_pass_without_waiting() -> None:
    plugins = chain(("error-page", {"upstream": "u", "statuses": [404]}))
    assert plugins.on_response(request(), Response(200)) is None


async def test_answers_of_other_plugins_are_replaced_too() -> None:
    services = PluginServices(send_to=sending(lambda upstream, question: Response(403, body=b"custom")))
    plugins = chain(
        ("error-page", {"upstream": "u", "statuses": [403]}),
        ("ip-restriction", {"whitelist": ["10.0.0.0/8"]}),
        services=services,
    )
    answer = await exchanged(plugins, request())
    assert answer.body == b"custom"
    assert answer.reason == "Your IP address is not allowed"


async def test_service_that_is_away_leaves_the_error_as_it_was() -> None:
    plugins = chain(("error-page", {"upstream": "u", "statuses": [404]}))
    answer = await answered(plugins, request(), Response(404), b"plain")
    assert (answer.status, answer.body) == (404, b"plain")


@pytest.mark.parametrize("statuses", [[], [199], ["5xx"], ["503-500"], [600], "404"])
def test_bad_statuses_are_refused(statuses) -> None:
    with pytest.raises(PluginRefused, match="statuses"):
        chain(("error-page", {"upstream": "u", "statuses": statuses}))
