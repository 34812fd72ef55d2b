import pytest

from fakes.peers.ldap_server import ldap_server
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
    dn = "cn=jill,dc=example"
    known = directory(consumer("jill", ("ldap-auth", {"user_dn": dn})), consumer("jack", ("key-auth", {"key": "k"})))
    async with ldap_server({dn: "p"}) as ldap:
        waiting = {"ldap-auth": {"ldap_uri": f"127.0.0.1:{ldap.port}", "base_dn": "dc=example"}}
        chain = chain_for(known, ("multi-auth", {"auth_plugins": [waiting, waiting, {"key-auth": {}}]}))
        for headers, name in (([basic("jill", "p")], "jill"), ([basic("jill", "x"), ("apikey", "k")], "jack")):
            given = request("/", headers)
            assert await asked(chain, given) is None
            assert given.headers.get("X-Consumer-Username") == name
        refused = await asked(chain, request("/", [basic("jill", "x")]))
    assert refused is not None
    assert refused.status == 401
