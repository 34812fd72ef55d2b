import hashlib
import re

import pytest

from headgate.gateway.plugins.built_in.authentication.digest_auth import Nonces
from headgate.gateway.plugins.interface import Request, Response
from headgate.gateway.plugins.interface.errors import PluginRefused
from unit.gateway.plugins.running import asked, chain, request


def md5(text: str) -> str:
    return hashlib.md5(text.encode()).hexdigest()


FILE = f"# people\njack:shop:{md5('jack:shop:secret')}\njill:other:{md5('jill:other:secret')}\n"
CONFIG = {"htdigest": FILE, "realm": "shop"}


async def challenge(plugins, target: str = "/") -> str:
    response = await asked(plugins, request(target))
    assert response is not None
    assert response.status == 401
    return response.headers.get("WWW-Authenticate") or ""


def nonce_of(challenge: str) -> str:
    found = re.search('nonce="([^"]+)"', challenge)
    assert found is not None
    return found[1]


def answering(
    nonce: str, *, name: str = "jack", password: str = "secret", realm: str = "shop", count: int = 1, **other: str
) -> Request:
    """Answer a challenge as RFC 7616 section 3.4.1 says."""
    uri, shown = "/p?q=1", other.pop("shown", "/p?q=1")
    nc = f"{count:08x}"
    response = md5(f"{md5(f'{name}:{realm}:{password}')}:{nonce}:{nc}:c0ffee:auth:{md5(f'GET:{shown}')}")
    fields = {"username": name, "realm": realm, "nonce": nonce, "uri": shown, "response": response, "cnonce": "c0ffee"}
    quoted = ", ".join(f'{field}="{value}"' for field, value in {**fields, **other}.items())
    return request(uri, [("Authorization", f"Digest {quoted}, qop=auth, nc={nc}")])


async def status(plugins, given: Request) -> int:
    response = await asked(plugins, given)
    return 200 if response is None else response.status


async def test_challenge_names_realm_and_a_nonce() -> None:
    given = await challenge(chain(("digest-auth", {**CONFIG, "realm": 'a "b"'})))
    assert given.startswith('Digest realm="a \\"b\\"", qop="auth", algorithm=MD5, nonce="')
    assert "stale" not in given


async def test_right_password_passes_and_wrong_ones_do_not() -> None:
    plugins = chain(("digest-auth", CONFIG))
    nonce = nonce_of(await challenge(plugins))
    assert await status(plugins, answering(nonce, password="Secret")) == 401
    assert await status(plugins, answering(nonce, name="john")) == 401
    given = answering(nonce)
    assert await status(plugins, given) == 200
    assert given.variables["remote_user"] == "jack"
    assert "Authorization" in given.headers


async def test_user_of_another_realm_does_not_come_in() -> None:
    plugins = chain(("digest-auth", CONFIG))
    nonce = nonce_of(await challenge(plugins))
    assert await status(plugins, answering(nonce, name="jill", realm="other")) == 401
    assert await status(plugins, answering(nonce, name="jill")) == 401


async def test_answer_to_another_request_does_not_count() -> None:
    plugins = chain(("digest-auth", CONFIG))
    assert await status(plugins, answering(nonce_of(await challenge(plugins)), shown="/other")) == 401


async def test_count_is_taken_once_and_the_next_one_passes() -> None:
    plugins = chain(("digest-auth", CONFIG))
    nonce = nonce_of(await challenge(plugins))
    assert await status(plugins, answering(nonce)) == 200
    again = await asked(plugins, answering(nonce))
    assert again is not None
    assert "stale=true" in (again.headers.get("WWW-Authenticate") or "")
    assert await status(plugins, answering(nonce, count=2)) == 200


async def test_gateways_with_the_same_users_take_each_others_nonces_and_no_others() -> None:
    first, second = chain(("digest-auth", CONFIG)), chain(("digest-auth", CONFIG))
    other = chain(("digest-auth", {**CONFIG, "htdigest": f"jack:shop:{md5('jack:shop:x')}"}))
    nonce = nonce_of(await challenge(first))
    assert await status(second, answering(nonce)) == 200
    assert await status(other, answering(nonce, password="x")) == 401


def test_nonce_ends(monkeypatch) -> None:
    now = [1000.0]
    monkeypatch.setattr("time.time", lambda: now[0])
    nonces = Nonces(b"key", 60)
    nonce = nonces.make()
    now[0] += 59
    assert nonces.use(nonce, 1)
    now[0] += 2
    assert not nonces.use(nonce, 2)


@pytest.mark.parametrize("count", [0, 4096, 0xFFFFFFFF])
def test_count_out_of_range_is_refused(count: int) -> None:
    nonces = Nonces(b"key", 60)
    assert not nonces.use(nonces.make(), count)


@pytest.mark.parametrize(
    "value",
    [
        "",
        "Digest",
        "Basic amFjazpzZWNyZXQ=",
        'Digest username="jack"',
        'Digest username="jack", username="jack"',
        "Digest \xe9",
        'Digest username="jack',
    ],
)
async def test_what_is_no_digest_is_asked_for_one(value: str) -> None:
    assert await status(chain(("digest-auth", CONFIG)), request("/", [("Authorization", value)])) == 401


@pytest.mark.parametrize("change", [{"algorithm": "SHA-256"}, {"response": "\xe9"}, {"realm": "other"}])
async def test_fields_that_do_not_fit_are_refused(change: dict[str, str]) -> None:
    plugins = chain(("digest-auth", CONFIG))
    assert await status(plugins, answering(nonce_of(await challenge(plugins)), **change)) == 401


@pytest.mark.parametrize("nonce", ["x", "AAAA", "\xe9", "A" * 48])
async def test_nonce_of_anybody_else_is_refused(nonce: str) -> None:
    assert not Nonces(b"key", 60).use(nonce, 1)


async def test_credentials_are_hidden() -> None:
    plugins = chain(("digest-auth", {**CONFIG, "hide_credentials": True}))
    given = answering(nonce_of(await challenge(plugins)))
    assert await status(plugins, given) == 200
    assert "Authorization" not in given.headers


@pytest.mark.parametrize("config", [{}, {"htdigest": "jack:shop"}, {"htdigest": "jack:shop:short"}])
def test_bad_configuration_is_refused(config) -> None:
    with pytest.raises(PluginRefused):
        chain(("digest-auth", config))


async def test_line_that_cannot_be_used_lets_nobody_in_where_it_is_skipped() -> None:
    plugins = chain(("digest-auth", {"htdigest": f"jo:shop:bad\n{FILE}", "realm": "shop", "skip_invalid": True}))
    nonce = nonce_of(await challenge(plugins))
    assert await status(plugins, answering(nonce, name="jo")) == 401
    assert await status(plugins, answering(nonce)) == 200


async def test_users_may_be_listed_one_by_one() -> None:
    users = [{"username": "jack", "digest": f"shop:{md5('jack:shop:secret')}"}]
    plugins = chain(("digest-auth", {"users": users, "realm": "shop"}))
    outcome = await asked(plugins, answering(nonce_of(await challenge(plugins))))
    assert not isinstance(outcome, Response)
