import pytest

from headgate.gateway.plugins.interface import Request
from unit.gateway.plugins.people import chain_for, consumer, directory, with_key
from unit.gateway.plugins.running import asked, request

PEOPLE = directory(
    consumer("shop_jack", ("key-auth", {"key": "sesame"}), group="gold", labels={"custom_id": "495", "team": "a"}),
    consumer("shop_guest"),
)


async def status(config, given: Request) -> int:
    response = await asked(chain_for(PEOPLE, ("key-auth", config)), given)
    return 200 if response is None else response.status


async def test_the_upstream_is_told_who_it_is() -> None:
    given = with_key("sesame")
    assert await status({}, given) == 200
    assert given.headers.get("X-Consumer-Username") == "shop_jack"
    assert given.headers.get("X-Consumer-Group-Id") == "gold"
    assert given.headers.get("X-Consumer-Custom-Id") == "495"
    assert given.headers.get("apikey") == "sesame"
    assert given.variables["consumer_name"] == given.variables["remote_user"] == "shop_jack"
    assert given.variables["consumer_group_id"] == "gold"


@pytest.mark.parametrize("target", ["/?apikey=sesame", "/?a=1&apikey=sesame", "/?apikey=%73esame"])
async def test_a_key_may_be_in_the_query(target) -> None:
    assert await status({}, request(target)) == 200


async def test_names_of_header_and_parameter_are_configured() -> None:
    config = {"header": "X-Key", "query": "k"}
    assert await status(config, request("/", [("x-key", "sesame")])) == 200
    assert await status(config, request("/?k=sesame")) == 200
    assert await status(config, with_key("sesame", "/?apikey=sesame")) == 401


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        (request("/"), "Missing API key in request"),
        (with_key(""), "Missing API key in request"),
        (with_key("Sesame"), "Invalid API key in request"),
        (with_key("wrong", "/?apikey=sesame"), "Invalid API key in request"),
    ],
)
async def test_without_the_right_key_nobody_passes(given, reason) -> None:
    response = await asked(chain_for(PEOPLE, ("key-auth", {"realm": "shop"})), given)
    assert response is not None
    assert (response.status, response.reason) == (401, reason)
    assert response.headers.get("WWW-Authenticate") == 'apikey realm="shop"'


async def test_the_key_is_hidden_where_it_was() -> None:
    by_header, by_query = with_key("sesame", "/?a=1"), request("/?a=1&apikey=sesame&b=2")
    for given in (by_header, by_query):
        assert await status({"hide_credentials": True}, given) == 200
    assert "apikey" not in by_header.headers
    assert (by_header.query, by_query.query) == ("a=1", "a=1&b=2")


async def test_who_cannot_be_recognised_may_count_as_the_anonymous_consumer() -> None:
    given = request("/")
    assert await status({"anonymous_consumer": "shop_guest"}, given) == 200
    assert given.headers.get("X-Consumer-Username") == "shop_guest"
    assert await status({"anonymous_consumer": "nobody"}, request("/")) == 401


async def test_what_a_client_claims_to_be_does_not_get_through() -> None:
    claims = ["X-Consumer-Username", "x-consumer-group-id", "X-Consumer-Custom-Id", "X-Credential-Identifier"]
    given = request("/", [*((name, "admin") for name in claims), ("apikey", "wrong")])
    assert await status({"anonymous_consumer": "shop_guest"}, given) == 200
    assert [given.headers.get(name) for name in claims] == ["shop_guest", None, None, None]
