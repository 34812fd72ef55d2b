"""What is not followed here, and what becomes of requests then.

Cases of ingress-nginx: `test/e2e/annotations/modsecurity/modsecurity.go`, `snippet.go`, `serversnippet.go`,
`streamsnippet.go`, and some of `proxyssl.go`. There is no ModSecurity here. An Ingress that asks for it refuses
requests, as they might come through otherwise.
"""

from collections.abc import AsyncIterator

import pytest

from fakes.translator.applied import World, world
from fakes.translator.nginx import ADOPTED, NGINX_CLASS, classed, options
from headgate.translator.world.settings import TranslationSettings

RULES = 'SecRuleEngine On\nSecRule REQUEST_HEADERS:User-Agent \\"block-ua\\" \\"log,deny,id:107,status:403\\"'


@pytest.fixture
async def one() -> AsyncIterator[World]:
    """A proxy before a Service `one`, which has adopted the class of ingress-nginx and follows snippets."""
    async with world("one", settings=ADOPTED) as made:
        made.proxy.apply(NGINX_CLASS)
        yield made


@pytest.fixture
async def strict() -> AsyncIterator[World]:
    """The same, but snippets are not followed by a setting."""
    async with world("one", settings=TranslationSettings(controller_names=ADOPTED.controller_names)) as made:
        made.proxy.apply(NGINX_CLASS)
        yield made


@pytest.mark.parametrize(
    "asking",
    [
        {"enable_modsecurity": "true"},
        {"enable_modsecurity": "True"},
        {
            "enable_modsecurity": "true",
            "enable_owasp_core_rules": "true",
            "modsecurity_transaction_id": "modsecurity-$request_id",
        },
        {"enable_modsecurity": "true", "modsecurity_snippet": "SecRuleEngine On"},
        {"enable_modsecurity": "true", "modsecurity_snippet": RULES},
    ],
)
async def test_requests_that_modsecurity_should_see_are_refused(one: World, asking: dict[str, str]) -> None:
    manifest = classed("asking", path="/asking", **asking)
    one.proxy.apply(classed(), manifest)
    got = await one.proxy.get("/asking", User_Agent="block-ua")
    assert (got.status, await one.proxy.status()) == (503, 200)
    assert one.servers["one"].heads[-1].startswith(b"GET / ")
    assert "there is no ModSecurity here" in one.proxy.messages(manifest)


@pytest.mark.parametrize("value", ["false", "False", "0", ""])
async def test_an_ingress_that_asks_for_no_modsecurity_is_served(one: World, value: str) -> None:
    manifest = classed(enable_modsecurity=value, enable_owasp_core_rules="false")
    one.proxy.apply(manifest)
    assert await one.proxy.status() == 200
    assert one.proxy.problems(manifest) == []


async def test_modsecurity_for_all_refuses_all_but_those_that_turn_it_off(one: World) -> None:
    everything = {
        "enable_modsecurity": "true",
        "enable_owasp_modsecurity_crs": "true",
        "modsecurity_snippet": "SecRuleEngine On",
    }
    one.proxy.apply(
        options(**everything),
        classed(modsecurity_snippet=RULES),
        classed("on", path="/on", enable_modsecurity="true"),
        classed("off", path="/off", enable_modsecurity="false"),
    )
    asked = {path: await one.proxy.status(path, User_Agent="block-ua") for path in ("/", "/on", "/off")}
    assert asked == {"/": 503, "/on": 503, "/off": 200}
    one.proxy.apply(options(enable_modsecurity="false"), classed())
    assert await one.proxy.status("/") == 200


@pytest.mark.parametrize("name", ["configuration_snippet", "server_snippet"])
async def test_snippets_are_left_out_if_their_risk_is_taken_and_they_are_not_allowed(strict: World, name: str) -> None:
    manifest = classed(**{name: '\n more_set_headers "Foo: Bar";\n more_set_headers "Xpto: Lalala";'})
    strict.proxy.apply(options(annotations_risk_level="Critical", allow_snippet_annotations="false"), manifest)
    got = await strict.proxy.get()
    assert (got.status, got["foo"], got["xpto"]) == (200, "", "")
    assert "is left out, as ingress-nginx does" in strict.proxy.messages(manifest)
    strict.proxy.apply(options(annotations_risk_level="Critical", allow_snippet_annotations="true"))
    got = await strict.proxy.get()
    assert (got.status, got["foo"], got["xpto"]) == (200, "Bar", "Lalala")
    strict.proxy.delete(options())
    assert await strict.proxy.status() == 503
