import pytest

from headgate.gateway.plugins.interface import Headers, Response
from headgate.gateway.plugins.interface.errors import PluginRefused
from unit.gateway.plugins.running import chain, exchanged, request

ORIGIN = "https://a.example"


async def answer(config, origin: str | None = ORIGIN, method: str = "GET", headers=()) -> Response:
    given = [*headers, *([("Origin", origin)] if origin else [])]
    return await exchanged(chain(("cors", config)), request("/", given, method=method))


async def preflight(config, origin: str = ORIGIN) -> Response:
    asking = [("Access-Control-Request-Method", "PUT"), ("Access-Control-Request-Headers", "X-A")]
    return await answer(config, origin, "OPTIONS", asking)


def allowed(response: Response) -> str | None:
    return response.headers.get("Access-Control-Allow-Origin")


async def test_default_allows_all_origins_literally() -> None:
    response = await answer({})
    assert allowed(response) == "*"
    assert "Vary" not in response.headers
    assert response.body == b"fine"


async def test_request_without_origin_gets_no_permissions() -> None:
    assert allowed(await answer({}, None)) is None


async def test_double_star_reflects_the_origin_with_credentials() -> None:
    config = {"allow_origins": "**", "allow_methods": "**", "allow_headers": "**", "allow_credential": True}
    response = await preflight(config)
    assert response.status == 200
    assert allowed(response) == ORIGIN
    assert response.headers.get("Access-Control-Allow-Credentials") == "true"
    assert "PUT" in (response.headers.get("Access-Control-Allow-Methods") or "")
    assert response.headers.get("Access-Control-Allow-Headers") == "X-A"
    assert response.headers.get("Vary") == "Origin, Access-Control-Request-Headers"


async def test_listed_origin_is_allowed_and_others_are_not() -> None:
    config = {"allow_origins": f"https://b.example, {ORIGIN}"}
    assert allowed(await answer(config)) == ORIGIN
    response = await answer(config, "https://evil.example")
    assert allowed(response) is None
    assert response.headers.get("Vary") == "Origin"


@pytest.mark.parametrize(
    ("origin", "taken"),
    [
        ("https://x.b.example:8443", True),
        ("https://b.example:8443", False),
        ("https://x.y.b.example:8443", False),
        ("https://x.b.example", False),
        ("https://x.bxexample:8443", False),
    ],
)
async def test_star_within_an_origin_is_one_label(origin, taken) -> None:
    response = await answer({"allow_origins": "https://*.b.example:8443"}, origin)
    assert allowed(response) == (origin if taken else None)


async def test_origins_may_be_given_by_pattern() -> None:
    config = {"allow_origins_by_regex": ["\\.example$"]}
    assert allowed(await answer(config)) == ORIGIN
    assert allowed(await answer(config, "https://a.example.evil")) is None


async def test_null_is_an_origin_like_others() -> None:
    assert allowed(await answer({"allow_origins": "null"}, "null")) == "null"


async def test_preflights_may_all_be_answered_and_told_the_method_that_they_ask_for() -> None:
    config = {"allow_origins": ORIGIN, "allow_methods": "**", "allow_headers": "**", "every_preflight": True}
    known, unknown = await preflight(config), await preflight(config, "https://b.example")
    assert known.headers.get("Access-Control-Allow-Methods") == "PUT"
    assert (unknown.status, unknown.body, allowed(unknown)) == (200, b"", None)
    assert (await answer(config, "https://b.example", "OPTIONS")).body == b"fine"
    listed = await preflight({**config, "allow_methods": "GET,PUT"})
    assert listed.headers.get("Access-Control-Allow-Methods") == "GET,PUT"


async def test_preflight_of_an_unknown_origin_goes_to_the_upstream() -> None:
    response = await preflight({"allow_origins": "https://b.example"})
    assert response.from_upstream


async def test_options_that_is_no_preflight_goes_to_the_upstream() -> None:
    assert (await answer({}, method="OPTIONS")).from_upstream


async def test_permissions_mark_answers_of_other_plugins_too() -> None:
    plugins = chain(("cors", {}), ("ip-restriction", {"whitelist": ["10.0.0.0/8"]}))
    response = await exchanged(plugins, request("/", [("Origin", ORIGIN)]))
    assert response.status == 403
    assert allowed(response) == "*"


async def test_lists_may_be_lists() -> None:
    response = await answer({"expose_headers": ["X-A", "X-B"], "max_age": 60, "timing_allow_origins": "*"})
    assert response.headers.get("Access-Control-Expose-Headers") == "X-A,X-B"
    assert response.headers.get("Access-Control-Max-Age") == "60"
    assert response.headers.get("Timing-Allow-Origin") == "*"


def test_star_with_credentials_is_refused() -> None:
    with pytest.raises(PluginRefused, match="allow_credential"):
        chain(("cors", {"allow_credential": True}))


async def test_preflight_may_be_answered_with_another_status() -> None:
    assert (await preflight({"preflight_status": 204})).status == 204


async def test_double_star_exposes_what_the_answer_has() -> None:
    answer_headers = Headers([("X-One", "1"), ("X-Two", "2")])
    plugins = chain(("cors", {"expose_headers": "**"}))
    response = await exchanged(plugins, request("/", [("Origin", ORIGIN)]), Response(200, answer_headers))
    exposed = (response.headers.get("Access-Control-Expose-Headers") or "").split(",")
    assert {"X-One", "X-Two"} <= set(exposed)
