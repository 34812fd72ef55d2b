import pytest

from unit.gateway.plugins.people import basic, chain_for, consumer, directory
from unit.gateway.plugins.running import asked, request

PEOPLE = directory(
    consumer("jack", ("key-auth", {"key": "k"})),
    consumer("jill", ("basic-auth", {"username": "jill", "password": "p"})),
)
BOTH = ("multi-auth", {"auth_plugins": [{"basic-auth": {}}, {"key-auth": {"header": "X-Key"}}]})


@pytest.mark.parametrize(("header", "name"), [(("X-Key", "k"), "jack"), (basic("jill", "p"), "jill")])
async def test_one_way_to_be_recognised_is_enough(header, name) -> None:
    given = request("/", [header])
    assert await asked(chain_for(PEOPLE, BOTH), given) is None
    assert given.headers.get("X-Consumer-Username") == name


async def test_without_any_all_are_asked_for() -> None:
    response = await asked(chain_for(PEOPLE, BOTH), request("/", [basic("jill", "wrong"), ("X-Key", "wrong")]))
    assert response is not None
    assert (response.status, response.reason) == (401, "Authorization Failed")
    assert response.headers.get_all("WWW-Authenticate") == ['Basic realm="basic"', 'apikey realm="key"']


async def test_ways_that_wait_are_tried_too() -> None:
    waiting = {"hmac-auth": {"validate_request_body": True}}
    known = directory(consumer("jack", ("key-auth", {"key": "k"})))
    chain = chain_for(known, ("multi-auth", {"auth_plugins": [waiting, {"key-auth": {}}]}))
    assert await asked(chain, request("/", [("apikey", "k")])) is None
