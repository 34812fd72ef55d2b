import pytest

from fakes.gateway.tls import SelfSigned
from fakes.peers.ldap_server import LdapServer, ldap_server
from headgate.gateway.plugins.built_in.authentication.ldap_auth import escape_value
from unit.gateway.plugins.people import basic, chain_for, consumer, directory
from unit.gateway.plugins.running import asked, request

BASE = "ou=users,dc=example,dc=org"
JACK = f"cn=jack,{BASE}"
PEOPLE = directory(consumer("shop_jack", ("ldap-auth", {"user_dn": JACK})))


async def answer(ldap: LdapServer, name: str = "jack", password: str = "secret", **config) -> tuple[int, str | None]:
    given = request("/", [basic(name, password)])
    told = {"ldap_uri": f"127.0.0.1:{ldap.port}", "base_dn": BASE, **config}
    response = await asked(chain_for(PEOPLE, ("ldap-auth", told)), given)
    return (200, given.headers.get("X-Consumer-Username")) if response is None else (response.status, response.reason)


async def test_a_name_and_a_password_that_the_server_accepts_are_a_consumer() -> None:
    async with ldap_server({JACK: "secret"}) as ldap:
        assert await answer(ldap) == (200, "shop_jack")
        assert await answer(ldap, password="Secret") == (401, "Invalid user authorization")
    assert ldap.binds == [(JACK, "secret"), (JACK, "Secret")]


async def test_the_server_is_not_asked_for_who_is_no_consumer_or_brings_no_password() -> None:
    async with ldap_server({JACK: "secret", f"cn=jill,{BASE}": "secret"}) as ldap:
        assert (await answer(ldap, name="jill"))[0] == 401
        assert (await answer(ldap, password=""))[0] == 401
    assert ldap.binds == []


@pytest.mark.parametrize(
    "wrong",
    [
        b"HTTP/1.1 400\r\n\r\n",
        bytes.fromhex("300c02010161070a013404000400"),
        b"\x30\x84\xff\xff\xff\xff",
        b"\x30\x82\x10\x01",
    ],
)
async def test_a_server_that_cannot_say_costs_a_503(wrong) -> None:
    async with ldap_server({JACK: "secret"}) as ldap:
        ldap.answer = wrong
        assert await answer(ldap) == (503, "the LDAP server did not answer")
    assert (await answer(ldap))[0] == 503


async def test_a_server_that_says_nothing_is_not_waited_for_for_long() -> None:
    async with ldap_server({JACK: "secret"}) as ldap:
        ldap.is_silent = True
        assert (await answer(ldap, timeout=50))[0] == 503


@pytest.mark.parametrize("told", [{"use_tls": True}, {"scheme": "ldaps://"}])
@pytest.mark.parametrize(("verifies", "expected"), [(False, 200), (True, 503)])
async def test_a_server_is_spoken_to_over_tls_and_checked_where_asked_for(told, verifies, expected) -> None:
    async with ldap_server({JACK: "secret"}, SelfSigned("ldap.example").server_context()) as ldap:
        uri = f"{told.get('scheme', '')}127.0.0.1:{ldap.port}"
        config = {name: value for name, value in told.items() if name != "scheme"}
        assert (await answer(ldap, ldap_uri=uri, tls_verify=verifies, **config))[0] == expected


@pytest.mark.parametrize(
    ("name", "escaped"),
    [("jack", "jack"), ("a,b=c", r"a\,b\=c"), (" a ", r"\ a\ "), ("#a#", r"\#a#"), ("a\0", r"a\00"), ("jörg", "jörg")],
)
def test_names_do_not_become_parts_of_the_distinguished_name(name, escaped) -> None:
    assert escape_value(name) == escaped
