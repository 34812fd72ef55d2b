"""What the end-to-end tests of ingress-nginx say of authentication, from an Ingress to the wire.

Each test names its behaviour there (`test/e2e/annotations/auth.go`, `satisfy.go`, `ipallowlist.go`, `ipdenylist.go`).
"""

import base64
import hashlib
import re
from collections.abc import AsyncIterator

import aiohttp
import bcrypt
import pytest

from fakes.gateway.proxied import Conversation, answering
from fakes.gateway.served import HOST, named
from fakes.translator.applied import World, secret, world
from fakes.translator.nginx import nginx_ingress

PEOPLE = f"foo:{bcrypt.hashpw(b'bar', bcrypt.gensalt(4)).decode()}\n"
BASIC = {"auth_type": "basic", "auth_secret": "people", "auth_realm": "test auth"}


def login(name: str = "foo", password: str = "bar") -> dict[str, str]:
    return {"Authorization": f"Basic {base64.b64encode(f'{name}:{password}'.encode()).decode()}"}


async def judge(conversation: Conversation) -> None:
    """An authentication service: foo and bar come in; `?status=` says what it answers to them."""
    while True:
        head, _ = await conversation.request()
        asked = re.search(rb"status=(\d+)", head)
        status = (asked[1] if asked else b"200") if login()["Authorization"].encode() in head else b"401"
        extra = b"Foo: verified\r\nSet-Cookie: alma=armud\r\n" if status == b"200" else b"WWW-Authenticate: Basic\r\n"
        await conversation.send(b"HTTP/1.1 %b Verdict\r\n%bContent-Length: 0\r\n\r\n" % (status, extra))


@pytest.fixture
async def shop() -> AsyncIterator[World]:
    """A proxy before a Service `one`, a Service `broken` that fails, and a service that says who may come in."""
    async with world("one", broken=answering(named(b"").replace(b"200 OK", b"503 Out")), auth=judge) as made:
        made.proxy.apply(secret("people", auth=PEOPLE))
        yield made


def asking(made: World, path: str = "/check", **more: str) -> dict[str, str]:
    return {"auth_url": f"http://127.0.0.1:{made.port('auth')}{path}", **more}


def sent(made: World, header: str, name: str = "one") -> str | None:
    """Return a header that a server got last."""
    lines = made.servers[name].heads[-1].decode().split("\r\n")[1:]
    return next((line.partition(": ")[2] for line in lines if line.lower().startswith(f"{header.lower()}:")), None)


# auth-type, auth-secret, auth-secret-type, auth-realm


async def test_no_name_and_password_is_asked_for_without_the_annotations(shop: World) -> None:
    shop.proxy.apply(nginx_ingress())
    assert await shop.proxy.status() == 200


async def test_a_missing_secret_closes_the_paths_until_it_is_there(shop: World) -> None:
    broken = nginx_ingress(**BASIC | {"auth_secret": "later"})
    shop.proxy.apply(broken, nginx_ingress("other", host="other.example"))
    assert await shop.proxy.status() == 503
    assert await shop.proxy.status(host="other.example") == 200
    assert shop.proxy.errors(broken) == ["InvalidAnnotation"]
    shop.proxy.apply(secret("later", auth=PEOPLE))
    assert await shop.proxy.status() == 401
    shop.proxy.delete(secret("later", auth=PEOPLE))
    assert await shop.proxy.status() == 503


@pytest.mark.parametrize("change", [{"auth_secret": "other/people"}, {"auth_secret": ""}, {"auth_secret": "a/b/c"}])
async def test_a_secret_of_another_namespace_or_none_closes_the_paths(shop: World, change: dict[str, str]) -> None:
    shop.proxy.apply(nginx_ingress(**BASIC | change))
    assert await shop.proxy.status(**login()) == 503


async def test_a_secret_without_the_key_closes_the_paths(shop: World) -> None:
    shop.proxy.apply(secret("people", other=PEOPLE), nginx_ingress(**BASIC))
    assert await shop.proxy.status(**login()) == 503


async def test_name_and_password_are_asked_for_and_checked(shop: World) -> None:
    shop.proxy.apply(nginx_ingress(**BASIC))
    got = await shop.proxy.get()
    assert (got.status, got["www-authenticate"]) == (401, 'Basic realm="test auth"')
    assert await shop.proxy.status(**login(password="wrong")) == 401
    assert await shop.proxy.status(**login("user")) == 401
    assert await shop.proxy.status(**login()) == 200
    assert sent(shop, "Authorization") is None


async def test_a_secret_may_have_a_key_for_each_user(shop: World) -> None:
    users = {"foo": PEOPLE.strip().partition(":")[2], "broken": "no hash"}
    shop.proxy.apply(secret("people", **users), nginx_ingress(**BASIC, auth_secret_type="auth-map"))
    assert await shop.proxy.status(**login()) == 200
    assert await shop.proxy.status(**login("broken", "no hash")) == 401


@pytest.mark.parametrize("content", ["foo:", "foo", "foo:\n", "foo:no hash\n", ""])
async def test_a_file_without_a_good_hash_lets_no_user_in(shop: World, content: str) -> None:
    shop.proxy.apply(secret("people", auth=content), nginx_ingress(**BASIC))
    assert [await shop.proxy.status(**login()), await shop.proxy.status()] == [401, 401]


HASHES = {
    "SHA": "{SHA}Ys23Ag/5IOWqZCw9QGaVDdHwH00=",
    "PLAIN": "{PLAIN}bar",
    "apr1": "$apr1$Q7bx8Jsb$VKw2H8OinhIKxFFXxVf0X/",
    "bcrypt": bcrypt.hashpw(b"bar", bcrypt.gensalt(5)).decode().replace("$2b$", "$2y$"),
}


@pytest.mark.parametrize("form", HASHES)
async def test_forms_of_hashes(shop: World, form: str) -> None:
    content = f"# people\r\nother:{{PLAIN}}x\r\nfoo:{HASHES[form]}:a comment\r\n"
    shop.proxy.apply(secret("people", auth=content), nginx_ingress(**BASIC))
    assert [await shop.proxy.status(**login()), await shop.proxy.status(**login(password="x"))] == [200, 401]
    assert await shop.proxy.status(**login("other", "x")) == 200


@pytest.mark.parametrize("form", ["auth-file", "auth-map"])
async def test_digest_is_checked(shop: World, form: str) -> None:
    line = f"shop:{hashlib.md5(b'foo:shop:bar').hexdigest()}"
    values = {"auth": f"foo:{line}\n"} if form == "auth-file" else {"foo": line}
    digest = {"auth_type": "digest", "auth_realm": "shop", "auth_secret": "people", "auth_secret_type": form}
    shop.proxy.apply(secret("people", **values), nginx_ingress(**digest))
    assert (await shop.proxy.get())["www-authenticate"].startswith('Digest realm="shop"')
    for password, status in (("wrong", 401), ("bar", 200)):
        middleware = aiohttp.DigestAuthMiddleware("foo", password)
        async with aiohttp.ClientSession(middlewares=(middleware,), headers={"Host": HOST}) as client:
            answer = await client.get(f"http://127.0.0.1:{shop.proxy.proxy.port}/p?q=1")
            assert answer.status == status


async def test_a_changed_secret_counts_at_once(shop: World) -> None:
    shop.proxy.apply(nginx_ingress(**BASIC))
    assert await shop.proxy.status(**login()) == 200
    shop.proxy.apply(secret("people", auth="foo:{PLAIN}other"))
    assert [await shop.proxy.status(**login(password=password)) for password in ("bar", "other")] == [401, 200]


async def test_a_bad_type_drops_the_ingress(shop: World) -> None:
    shop.proxy.apply(nginx_ingress(**BASIC | {"auth_type": "kerberos"}))
    assert await shop.proxy.status(**login()) == 404


async def test_headers_for_other_origins_are_on_a_401(shop: World) -> None:
    shop.proxy.apply(nginx_ingress(**BASIC, enable_cors="true"))
    got = await shop.proxy.get(Origin="https://a.example")
    assert (got.status, got["access-control-allow-origin"]) == (401, "*")


async def test_a_preflight_is_answered_before_anybody_is_asked_for_a_password(shop: World) -> None:
    shop.proxy.apply(nginx_ingress(**asking(shop), enable_cors="true"))
    assert (await shop.proxy.get(method="OPTIONS", Origin="https://a.example")).status == 204
    assert shop.servers["auth"].heads == []


# auth-url


async def test_the_service_lets_in_or_the_client_is_sent_to_sign_in(shop: World) -> None:
    shop.proxy.apply(nginx_ingress(**asking(shop), auth_signin="http://$host/auth/start"))
    assert await shop.proxy.status(**login()) == 200
    got = await shop.proxy.get("/?a=b&c=d")
    expected = f"http://{HOST}/auth/start?rd=http://{HOST}%2F%3Fa%3Db%26c%3Dd"
    assert (got.status, got["location"]) == (302, expected)


@pytest.mark.parametrize(
    ("signin", "param", "location"),
    [
        ("http://$host/auth/start", "orig", "http://a.example/auth/start?orig=http://a.example%2Fx"),
        ("http://$host/auth/start?foo=1", "", "http://a.example/auth/start?foo=1&rd=http://a.example%2Fx"),
        ("http://$host/auth/start?rd=/back", "", "http://a.example/auth/start?rd=/back"),
        ("http://$host/auth/start?foo=1", "foo", "http://a.example/auth/start?foo=1"),
    ],
)
async def test_where_a_client_signs_in_is_told_what_it_asked_for(
    shop: World, signin: str, param: str, location: str
) -> None:
    shop.proxy.apply(nginx_ingress(**asking(shop), auth_signin=signin, auth_signin_redirect_param=param))
    assert (await shop.proxy.get("/x"))["location"] == location


async def test_without_a_page_to_sign_in_the_client_gets_the_challenge(shop: World) -> None:
    shop.proxy.apply(nginx_ingress(**asking(shop)))
    got = await shop.proxy.get()
    assert (got.status, got["www-authenticate"]) == (401, "Basic")


@pytest.mark.parametrize(("answered", "status"), [(201, 200), (403, 403), (302, 500), (404, 500), (503, 500)])
async def test_other_answers_of_the_service_refuse(shop: World, answered: int, status: int) -> None:
    shop.proxy.apply(nginx_ingress(**asking(shop)))
    shop.proxy.apply(nginx_ingress(**asking(shop, f"/check?status={answered}")))
    assert await shop.proxy.status(**login()) == status


async def test_a_service_that_does_not_answer_is_a_500(shop: World) -> None:
    shop.proxy.apply(nginx_ingress(auth_url="http://127.0.0.1:1/check"))
    assert await shop.proxy.status(**login()) == 500


async def test_the_service_is_told_of_the_request_and_gets_no_body(shop: World) -> None:
    shop.proxy.apply(nginx_ingress(**asking(shop, "/check?for=$host")))
    await shop.proxy.proxy.post(b"body", "/p?q=1", **login(), X_Forwarded_Proto="https", Cookie="a=b")
    head = shop.servers["auth"].heads[-1]
    assert head.startswith(b"GET /check?for=a.example HTTP/1.1\r\n")
    told = {name: sent(shop, name, "auth") for name in ("X-Original-URL", "X-Original-Method", "X-Sent-From")}
    assert told == {
        "X-Original-URL": f"http://{HOST}/p?q=1",
        "X-Original-Method": "POST",
        "X-Sent-From": "nginx-ingress-controller",
    }
    assert sent(shop, "X-Auth-Request-Redirect", "auth") == "/p?q=1"
    assert sent(shop, "Cookie", "auth") == "a=b"
    assert sent(shop, "X-Forwarded-Proto", "auth") is None
    assert sent(shop, "X-Real-IP", "auth") == "127.0.0.1"
    assert (sent(shop, "Content-Length", "auth") or "0") == "0"


async def test_method_and_redirect_can_be_said(shop: World) -> None:
    more = {"auth_method": "HEAD", "auth_request_redirect": "https://other.example/back"}
    shop.proxy.apply(nginx_ingress(**asking(shop), **more))
    await shop.proxy.get("/p", **login())
    assert shop.servers["auth"].heads[-1].startswith(b"HEAD /check ")
    assert sent(shop, "X-Auth-Request-Redirect", "auth") == "https://other.example/back"
    assert sent(shop, "X-Original-URI", "auth") == "/p"


async def test_headers_of_the_service_take_the_place_of_the_clients(shop: World) -> None:
    shop.proxy.apply(nginx_ingress(**asking(shop), auth_response_headers="Foo, X-None"))
    await shop.proxy.get(**login(), Foo="forged", X_None="forged")
    assert (sent(shop, "Foo"), sent(shop, "X-None")) == ("verified", None)


async def test_a_cookie_of_the_service_reaches_the_client_unless_the_upstream_fails(shop: World) -> None:
    shop.proxy.apply(nginx_ingress(**asking(shop)), nginx_ingress("b", host="b.example", to="broken", **asking(shop)))
    assert (await shop.proxy.get(**login())).cookie == "alma=armud"
    failed = await shop.proxy.get(host="b.example", **login())
    assert (failed.status, failed.cookie) == (503, "")


async def test_a_cookie_of_the_service_reaches_the_client_always_if_that_is_wanted(shop: World) -> None:
    shop.proxy.apply(nginx_ingress(to="broken", **asking(shop), auth_always_set_cookie="true"))
    failed = await shop.proxy.get(**login())
    assert (failed.status, failed.cookie) == (503, "alma=armud")


async def keeping(conversation: Conversation) -> None:
    """A service without cookies, whose answers can be kept."""
    while True:
        head, _ = await conversation.request()
        status = b"200" if login()["Authorization"].encode() in head else b"401"
        await conversation.send(b"HTTP/1.1 %b V\r\nWWW-Authenticate: Basic\r\nContent-Length: 0\r\n\r\n" % status)


async def test_an_answer_that_is_kept_outlives_the_service_for_its_host_and_path() -> None:
    async with world("one", auth=keeping) as made:
        kept = {"auth_cache_key": "fixed", "auth_cache_duration": "200 201 401 30m", **asking(made)}
        made.proxy.apply(
            nginx_ingress("foo", path="/foo", **kept),
            nginx_ingress("bar", path="/bar", **kept),
            nginx_ingress("that", path="/foo", host="that.example", **kept),
        )
        assert await made.proxy.status("/foo", **login()) == 200
        await made.servers["auth"].stop()
        assert await made.proxy.status("/foo", **login()) == 200
        assert await made.proxy.status("/bar", **login()) == 500
        assert await made.proxy.status("/foo", host="that.example", **login()) == 500


async def test_a_refusal_is_kept_with_its_challenge_and_by_its_key() -> None:
    async with world("one", auth=keeping) as made:
        made.proxy.apply(nginx_ingress(auth_cache_key="$http_authorization", **asking(made)))
        for _ in range(2):
            got = await made.proxy.get()
            assert (got.status, got["www-authenticate"]) == (401, "Basic")
        assert len(made.servers["auth"].heads) == 1
        assert await made.proxy.status(**login()) == 200


async def test_an_auth_url_without_a_host_closes_the_paths(shop: World) -> None:
    for url in ("https://invalid..auth.url", "auth", "http:///x", "ftp://a.example"):
        shop.proxy.apply(nginx_ingress(name=f"i{len(url)}", host=f"h{len(url)}.example", auth_url=url))
        assert await shop.proxy.status(host=f"h{len(url)}.example", **login()) == 503


async def test_an_auth_url_with_other_characters_drops_the_ingress(shop: World) -> None:
    shop.proxy.apply(nginx_ingress(auth_url="http://a.example/;return 200"))
    assert await shop.proxy.status(**login()) == 404


@pytest.mark.parametrize(
    "change",
    [{"auth_method": "FETCH"}, {"auth_response_headers": "a b:c"}, {"auth_cache_duration": "200"}],
)
async def test_other_bad_values_close_the_paths(shop: World, change: dict[str, str]) -> None:
    shop.proxy.apply(nginx_ingress(**asking(shop), **change))
    assert await shop.proxy.status(**login()) == 503


# satisfy, allowlist-source-range, denylist-source-range


async def test_satisfy_any_lets_in_by_address_or_password(shop: World) -> None:
    here, elsewhere = {"allowlist_source_range": "127.0.0.0/8"}, {"whitelist_source_range": "192.0.2.0/24"}
    shop.proxy.apply(nginx_ingress(**BASIC, **here, satisfy="any"))
    assert await shop.proxy.status() == 200
    shop.proxy.apply(nginx_ingress(**BASIC, **elsewhere, satisfy="any"))
    assert [await shop.proxy.status(), await shop.proxy.status(**login())] == [401, 200]


async def test_all_have_to_be_satisfied_otherwise(shop: World) -> None:
    shop.proxy.apply(nginx_ingress(**BASIC, whitelist_source_range="192.0.2.0/24", satisfy="all"))
    assert await shop.proxy.status(**login()) == 403
    shop.proxy.apply(nginx_ingress(**BASIC, whitelist_source_range="127.0.0.1", satisfy="sometimes"))
    assert [await shop.proxy.status(), await shop.proxy.status(**login())] == [401, 200]


async def test_satisfy_any_holds_with_a_service_that_is_asked(shop: World) -> None:
    rules = {"allowlist_source_range": "192.0.2.0/24", "satisfy": "any"}
    shop.proxy.apply(nginx_ingress(**asking(shop), **rules))
    assert [await shop.proxy.status(), await shop.proxy.status(**login())] == [401, 200]


@pytest.mark.parametrize(
    ("lists", "status"),
    [
        ({"allowlist_source_range": "127.0.0.1"}, 200),
        ({"allowlist_source_range": "10.0.0.0/8"}, 403),
        ({"denylist_source_range": "127.0.0.0/8"}, 403),
        ({"denylist_source_range": "10.0.0.0/8"}, 200),
        ({"allowlist_source_range": "127.0.0.1", "denylist_source_range": "127.0.0.0/30"}, 403),
        ({"allowlist_source_range": "127.0.0.1, nowhere"}, 503),
    ],
)
async def test_lists_of_addresses_let_in_and_keep_out(shop: World, lists: dict[str, str], status: int) -> None:
    shop.proxy.apply(nginx_ingress(**lists))
    assert await shop.proxy.status() == status


async def test_two_authentications_of_which_any_is_enough_send_to_sign_in(shop: World) -> None:
    rules = {**BASIC, **asking(shop), "auth_signin": "http://$host/auth/start", "satisfy": "any"}
    shop.proxy.apply(secret("people", auth="uname:{PLAIN}pwd"), nginx_ingress(**rules))
    assert [await shop.proxy.status(**login("uname", "pwd")), await shop.proxy.status(**login())] == [200, 200]
    got = await shop.proxy.get("/?a=b&c=d")
    assert (got.status, got["location"]) == (302, f"http://{HOST}/auth/start?rd=http://{HOST}%2F%3Fa%3Db%26c%3Dd")


async def test_the_service_sees_the_password_that_was_checked_and_the_upstream_does_not(shop: World) -> None:
    shop.proxy.apply(nginx_ingress(**BASIC, **asking(shop)))
    assert [await shop.proxy.status(), await shop.proxy.status(**login())] == [401, 200]
    assert sent(shop, "Authorization", "auth") == login()["Authorization"]
    assert sent(shop, "Authorization") is None
