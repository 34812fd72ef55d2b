import pytest

from headgate.gateway.plugins.interface.errors import PluginRefused
from unit.gateway.plugins.running import asked, chain, request


async def location(config, target: str = "/a/b?q=1", **given) -> tuple[int, str | None] | None:
    response = await asked(chain(("redirect", config)), request(target, **given))
    return None if response is None else (response.status, response.headers.get("Location"))


@pytest.mark.parametrize(("method", "status"), [("GET", 301), ("HEAD", 301), ("POST", 308)])
async def test_plain_http_is_redirected_to_https(method, status) -> None:
    found = await location({"http_to_https": True}, method=method, authority="a.example:8080")
    assert found == (status, "https://a.example/a/b?q=1")


async def test_port_and_status_may_be_given() -> None:
    found = await location({"http_to_https": True, "https_port": 8443, "ret_code": 307})
    assert found == (307, "https://a.example:8443/a/b?q=1")


async def test_https_goes_on() -> None:
    assert await location({"http_to_https": True}, scheme="https") is None


async def test_request_without_a_host_is_not_sent_nowhere() -> None:
    assert await location({"http_to_https": True}, host="") == (400, None)


async def test_uri_is_a_template() -> None:
    assert await location({"uri": "https://$host/new$uri"}) == (302, "https://a.example/new/a/b")


async def test_query_is_appended() -> None:
    assert await location({"uri": "/n", "append_query_string": True}) == (302, "/n?q=1")
    assert await location({"uri": "/n?x=y", "append_query_string": True}) == (302, "/n?x=y&q=1")
    assert await location({"uri": "/n", "append_query_string": True}, "/a") == (302, "/n")


async def test_pattern_rewrites_the_path() -> None:
    assert await location({"regex_uri": ["^/a/(.*)$", "/z/${1}"], "ret_code": 301}) == (301, "/z/b")


async def test_path_that_the_pattern_does_not_match_goes_on() -> None:
    assert await location({"regex_uri": ["^/other", "/z"]}) is None


async def test_a_location_may_have_a_fragment() -> None:
    assert await location({"uri": "/z?a=b c#d e"}) == (302, "/z?a=b%20c#d%20e")


async def test_pattern_may_look_at_the_whole_url() -> None:
    config = {"regex_uri": ["^http://a\\.(.*)$", "https://www.$1"], "match_url": True}
    assert await location(config) == (302, "https://www.example/a/b?q=1")


async def test_location_cannot_split_the_head() -> None:
    asking = request("/", [("X", "a b\xfc")])
    response = await asked(chain(("redirect", {"uri": "/$http_x"})), asking)
    assert response is not None
    assert response.headers.get("Location") == "/a%20b%FC"


@pytest.mark.parametrize(
    ("config", "target", "expected"),
    [
        ({"uri": "$uri/"}, "//evil.example", "/evil.example/"),
        ({"regex_uri": ["^/old/(.*)$", "/$1"]}, "/old//evil.example", "/evil.example"),
        ({"regex_uri": ["^/old/(.*)$", "/$1"]}, "/old/\\evil.example", "/evil.example"),
        ({"regex_uri": ["^/old(.*)$", "$1"]}, "/old\\/evil.example", "/evil.example"),
        ({"uri": "//cdn.example$uri"}, "/a", "//cdn.example/a"),
    ],
)
async def test_what_a_client_sends_does_not_name_the_host_to_go_to(config, target: str, expected: str) -> None:
    assert await location(config, target) == (302, expected)


async def test_path_is_encoded_again_on_demand() -> None:
    assert await location({"uri": "/$uri", "encode_uri": True}, "/%41") == (302, "/%2541")


@pytest.mark.parametrize(
    "config",
    [
        {},
        {"uri": "/a", "http_to_https": True},
        {"http_to_https": True, "append_query_string": True},
        {"regex_uri": ["a"]},
    ],
)
def test_bad_configuration_is_refused(config) -> None:
    with pytest.raises(PluginRefused):
        chain(("redirect", config))
