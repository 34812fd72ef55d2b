import asyncio
import base64
import hashlib
import inspect
import threading
from collections.abc import Callable
from functools import partial
from typing import Any

import bcrypt
import pytest

from headgate.gateway.plugins.built_in.authentication import basic_auth
from headgate.gateway.plugins.built_in.authentication.passwords import Check, Hashed, apr1, plain, read_hash
from headgate.gateway.plugins.interface import Request
from headgate.gateway.plugins.interface.errors import PluginRefused
from unit.gateway.plugins.people import chain_for, consumer, directory
from unit.gateway.plugins.running import asked, chain, request


def asking(name: str = "jack", password: str = "secret") -> Request:
    text = base64.b64encode(f"{name}:{password}".encode()).decode()
    return request("/", [("Authorization", f"Basic {text}")])


async def status(config, given: Request) -> int:
    response = await asked(chain(("basic-auth", config)), given)
    return 200 if response is None else response.status


PLAIN = {"users": [{"username": "jack", "password": "secret"}]}


async def test_right_password_passes_and_wrong_ones_do_not() -> None:
    assert await status(PLAIN, asking()) == 200
    assert await status(PLAIN, asking(password="Secret")) == 401
    assert await status(PLAIN, asking(name="jill")) == 401


@pytest.mark.parametrize("value", ["", "Bearer x", "Basic", "Basic %%%", "Basic \xe9", "Basic amFjaw=="])
async def test_what_is_no_credentials_is_asked_for_some(value) -> None:
    response = await asked(chain(("basic-auth", {**PLAIN, "realm": 'a "b"'})), request("/", [("Authorization", value)]))
    assert response is not None
    assert response.status == 401
    assert response.headers.get("WWW-Authenticate") == 'Basic realm="a \\"b\\""'


async def test_credentials_are_hidden_and_the_name_is_told() -> None:
    given = asking()
    config = {**PLAIN, "hide_credentials": True, "user_header": "X-User"}
    assert await status(config, given) == 200
    assert "Authorization" not in given.headers
    assert given.headers.get("X-User") == "jack"
    assert given.variables["remote_user"] == "jack"


@pytest.mark.parametrize(
    ("password", "expected"),
    [
        ("", "SVU5DyKasLwxHneKr84nN."),
        ("a", "FziZ/OfnM9nrLicAFMl2d."),
        ("myPassword", "sQw6g73nRuoOIj/gnD18Z."),
        ("0123456789abcdef", "V6MfccckLG740xSMI61n.0"),
        ("0123456789abcdefg", "dnFWLMzMSl4/vJ8x980qJ."),
        ("x" * 40, "nwSZVOyHrrqHrLCSGDD4D0"),
    ],
)
def test_apr1_agrees_with_openssl(password, expected) -> None:
    # openssl passwd -apr1 -salt lZL6V/ci PASSWORD
    kept = f"$apr1$lZL6V/ci${expected}"
    assert apr1(password.encode(), b"lZL6V/ci") == kept.encode()
    assert read_hash(kept).check(password.encode())
    assert not read_hash(kept).check(b"another")


def test_sha_agrees_with_htpasswd() -> None:
    assert read_hash("{SHA}5en6G6MezRroT3XKqkdPOmY/BfQ=").check(b"secret")
    salted = "{SSHA}" + base64.b64encode(hashlib.sha1(b"secretsalt").digest() + b"salt").decode()
    assert read_hash(salted).check(b"secret")
    assert not read_hash(salted).check(b"Secret")


@pytest.mark.parametrize(
    "kept",
    [
        # openssl passwd -1, -5 and -6 -salt lZL6Vci secret; perl -e 'print crypt("secret", "lZ")'
        "$1$lZL6Vci$tXNAY8jysDZy0C9BpS05u0",
        "$5$lZL6Vci$7G0duK85mAWkTFedj.YvPvopQixkv4vnJ35TFhcDKj6",
        "$6$lZL6Vci$BuDsTijJRq/cmE42OPV5KBbAyMuU6wXBEa8FsaftqICIIkA26OJJEU09zbqhh6/FVXQp01cmFNG4AIQvUNCnl/",
        "lZPbp.gIwTyz.",
        "$6$rounds=1000$salt$HNxBeBnDfSfUrTj6KiLnmd7tGCvHEmcExh8kl/S0cZ5WrCciNZgfhbpkeFQ4JfkHX.8vPq45lY0iINnCx1Lkm.",
    ],
)
def test_forms_of_crypt_agree_with_openssl(kept: str) -> None:
    hashed = read_hash(kept)
    assert hashed.is_slow
    assert hashed.check(b"secret")
    assert not hashed.check(b"Secret")
    assert not hashed.check(b"sec\0ret")


def test_plain_password_of_a_file_is_checked() -> None:
    assert read_hash("{PLAIN}secret").check(b"secret")
    assert not read_hash("{PLAIN}secret").check(b"{PLAIN}secret")


async def test_user_whose_hash_cannot_be_used_stays_out_alone_where_that_is_asked_for(
    caplog: pytest.LogCaptureFixture,
) -> None:
    text = "a line\njack:{PLAIN}secret:a comment\njill:unusable\njack:{PLAIN}other\n"
    config = {"htpasswd": text, "users": [{"username": "joe", "hash": "$5$x$y"}], "skip_invalid": True}
    assert await status(config, asking()) == 200
    assert await status(config, asking(password="other")) == 401
    assert await status(config, asking("jill", "unusable")) == 401
    assert await status(config, asking("joe", "")) == 401
    assert caplog.messages[0].startswith("basic-auth of a|r: 2 users cannot come in")
    assert "unusable" not in caplog.text


async def test_file_of_htpasswd_is_read() -> None:
    kept = bcrypt.hashpw(b"secret", bcrypt.gensalt(4)).decode().replace("$2b$", "$2y$")
    text = f"# people\n\njack:{kept}\njill:{apr1(b'other', b'salt').decode()}\n"
    assert await status({"htpasswd": text}, asking()) == 200
    assert await status({"htpasswd": text}, asking(password="wrong")) == 401
    assert await status({"htpasswd": text}, asking("jill", "other")) == 200


async def test_slow_check_happens_once_for_a_password_that_is_right() -> None:
    kept = bcrypt.hashpw(b"secret", bcrypt.gensalt(4)).decode()
    plugins = chain(("basic-auth", {"users": [{"username": "jack", "hash": kept}]}))
    first = plugins.on_request(asking())
    assert inspect.isawaitable(first)
    assert await first is None
    assert plugins.on_request(asking()) is None
    wrong = plugins.on_request(asking(password="wrong"))
    assert inspect.isawaitable(wrong)
    assert await wrong is not None


async def test_guessing_is_bounded(monkeypatch) -> None:
    monkeypatch.setattr("headgate.gateway.plugins.built_in.authentication.basic_auth.MAX_WAITING", 4)
    kept = bcrypt.hashpw(b"secret", bcrypt.gensalt(4)).decode()
    plugins = chain(("basic-auth", {"users": [{"username": "jack", "hash": kept}]}))
    answers = await asyncio.gather(*(asked(plugins, asking(password=f"guess {number}")) for number in range(6)))
    statuses = [answer.status for answer in answers if answer is not None]
    assert (statuses.count(401), statuses.count(503)) == (4, 2)
    assert await asked(plugins, asking()) is None


async def test_password_longer_than_bcrypt_takes_is_cut_as_everywhere() -> None:
    kept = bcrypt.hashpw(b"x" * 72, bcrypt.gensalt(4)).decode()
    config = {"users": [{"username": "jack", "hash": kept}]}
    assert await status(config, asking(password="x" * 80)) == 200
    assert await status(config, asking(password="x" * 71)) == 401
    assert await status(config, asking(password="x\0y")) == 401


@pytest.mark.parametrize(
    "config",
    [
        {"users": [{"username": "a"}]},
        {"users": [{"username": "a:b", "password": "x"}]},
        {"users": [{"username": "a", "hash": "$5$x$y"}]},
        {"users": [{"username": "a", "hash": "$2y$10$short"}]},
        {"users": [{"username": "a", "hash": "$6$rounds=999999$salt$" + "a" * 86}]},
        {"htpasswd": "no colon"},
    ],
)
def test_bad_configuration_is_refused(config) -> None:
    with pytest.raises(PluginRefused):
        chain(("basic-auth", config))


async def test_without_users_it_is_a_consumers_name_and_password() -> None:
    people = directory(consumer("shop_jack", ("basic-auth", {"username": "jack", "password": "secret"})))
    given = asking()
    assert await asked(chain_for(people, ("basic-auth", {"hide_credentials": True})), given) is None
    assert given.headers.get("X-Consumer-Username") == "shop_jack"
    assert "Authorization" not in given.headers


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        (request("/"), "Missing authorization in request"),
        (asking(password="Secret"), "Invalid user authorization"),
        (asking(name="jill"), "Invalid user authorization"),
        (asking(name="jack", password=""), "Invalid user authorization"),
    ],
)
async def test_without_a_consumers_password_nobody_passes(given, reason) -> None:
    people = directory(consumer("shop_jack", ("basic-auth", {"username": "jack", "password": "secret"})))
    response = await asked(chain_for(people, ("basic-auth", {})), given)
    assert response is not None
    assert (response.status, response.reason) == (401, reason)


def let_checks(monkeypatch: pytest.MonkeyPatch, do: Callable[[bytes, Check], bool]) -> None:
    """Have passwords that are read from now on checked by a function, which gets the check of before."""
    for read in (plain, read_hash):

        def replaced(kept: Any, read: Callable[[Any], Hashed] = read) -> Hashed:
            hashed = read(kept)
            return Hashed(partial(do, check=hashed.check), is_slow=hashed.is_slow)

        monkeypatch.setattr(basic_auth, read.__name__, replaced)


@pytest.mark.parametrize("kind", ["bcrypt", "apr1", "plain"])
async def test_an_unknown_name_costs_the_same_check_as_a_known_one(monkeypatch, kind: str) -> None:
    kept = {
        "bcrypt": {"hash": bcrypt.hashpw(b"secret", bcrypt.gensalt(4)).decode()},
        "apr1": {"hash": apr1(b"secret", b"salt").decode()},
        "plain": {"password": "secret"},
    }[kind]
    checked: list[bytes] = []
    let_checks(monkeypatch, lambda password, check: checked.append(password) or check(password))
    plugins = chain(("basic-auth", {"users": [{"username": "jack", **kept}]}))
    for given in (asking(password="wrong"), asking(name="jill", password="wrong"), asking(name="jill")):
        response = await asked(plugins, given)
        assert response is not None
        assert (response.status, response.reason) == (401, "wrong name or password")
    assert checked == [b"wrong", b"wrong", b"secret"]
    assert await asked(plugins, asking()) is None


async def test_an_unknown_name_is_refused_where_nobody_is_known() -> None:
    assert await status({"htpasswd": "# nobody yet"}, asking()) == 401


async def test_guessing_on_one_route_leaves_a_thread_to_others(monkeypatch) -> None:
    config = {"users": [{"username": "jack", "hash": bcrypt.hashpw(b"secret", bcrypt.gensalt(4)).decode()}]}
    started, go_on = threading.Event(), threading.Event()
    other = chain(("basic-auth", config))
    let_checks(monkeypatch, lambda password, check: started.set() or not go_on.wait(30))
    guessed = chain(("basic-auth", config))
    guesses = [asyncio.ensure_future(asked(guessed, asking(password=str(each)))) for each in range(8)]
    await asyncio.to_thread(started.wait, 30)
    try:
        assert await asyncio.wait_for(asked(other, asking()), 30) is None
    finally:
        go_on.set()
    assert [response.status for response in await asyncio.gather(*guesses) if response] == [401] * 8


@pytest.mark.parametrize("cost", ["15", "31", "03", "xx"])
def test_a_hash_that_takes_too_long_to_check_is_refused(cost: str) -> None:
    kept = f"$2b${cost}${'a' * 53}"
    with pytest.raises(PluginRefused, match=f"this bcrypt hash has the cost {cost}; from 4 to 14 are taken"):
        chain(("basic-auth", {"users": [{"username": "jack", "hash": kept}]}))


def test_a_password_that_no_htpasswd_takes_is_not_gone_through_a_thousand_times(monkeypatch) -> None:
    monkeypatch.setattr(
        "headgate.gateway.plugins.built_in.authentication.passwords.apr1", lambda password, salt: pytest.fail("hashed")
    )
    assert not read_hash("$apr1$salt$hash").check(b"x" * 513)
