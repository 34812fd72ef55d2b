"""By what a gateway is known to a provider, how it reaches it, and what it gives it beforehand."""

import asyncio
import base64
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import jwt
import pytest
from aiohttp import web
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from fakes.gateway.tls import SelfSigned
from fakes.peers.openid_provider import KEY, OpenidProvider
from headgate.common.plugins.authentication.openid_client import ProxyOpts
from headgate.gateway.plugins.built_in.authentication.openid_connect.provider import choose_proxy
from headgate.gateway.plugins.interface.errors import PluginRefused
from headgate.gateway.plugins.kit.calls import Proxy
from unit.gateway.plugins.oidc_site import SESSION, Browser, Site, bearing, site, status
from unit.gateway.plugins.running import asked
from unit.gateway.plugins.service import Seen, running

EC_KEY, EC_521 = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP521R1())


def pem(key: Any) -> str:
    form = serialization.PrivateFormat.PKCS8
    text: bytes = key.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption())
    return text.decode()


def public_jwk(key: Any, algorithm: str) -> dict[str, Any]:
    found: dict[str, Any] = jwt.get_algorithm_by_name(algorithm).to_jwk(key.public_key(), as_dict=True)
    return {**found, "use": "sig"}


@pytest.mark.parametrize(
    ("key", "algorithm"), [(KEY, None), (KEY, "RS512"), (EC_KEY, "ES256"), (EC_521, "ES512"), (None, "HS512")]
)
async def test_a_client_signs_in_with_a_token_of_its_own(key, algorithm) -> None:
    async with site() as here:
        method = "client_secret_jwt"
        signed: dict[str, Any] = {} if algorithm is None else {"client_jwt_assertion_alg": algorithm}
        if key is not None:
            method = "private_key_jwt"
            here.provider.client_key = key.public_key()
            signed |= {"client_rsa_private_key": pem(key), "client_rsa_private_key_id": "mine"}
        config = {"session": SESSION, "token_endpoint_auth_method": method, "client_jwt_assertion_expires_in": 30}
        browser = Browser(here.chain(**config, **signed))
        assert (await browser.log_in(here.provider)).status == 302
        assert (await browser.get()).status == 200
        [said] = here.provider.assertions
        assert said["exp"] - said["iat"] == 30
        assert said["alg"] == (algorithm or "RS256")
        assert said.get("kid") == (None if key is None else "mine")
        assert "client_secret" not in here.provider.asked_with


async def test_a_token_is_asked_about_by_a_client_that_signs_in_with_one() -> None:
    async with site() as here:
        here.provider.active = {"t": {"active": True, "sub": "jack"}}
        plugins = here.chain(bearer_only=True, introspection_endpoint_auth_method="client_secret_jwt")
        assert await status(plugins, bearing("t")) == 200
        assert len({said["jti"] for said in here.provider.assertions}) == 1


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ({"token_endpoint_auth_method": "private_key_jwt"}, "private_key_jwt needs client_rsa_private_key"),
        (
            {
                "token_endpoint_auth_method": "private_key_jwt",
                "client_rsa_private_key": pem(KEY),
                "client_jwt_assertion_alg": "HS256",
            },
            "cannot be signed by HS256",
        ),
        (
            {"token_endpoint_auth_method": "client_secret_jwt", "client_jwt_assertion_alg": "RS256"},
            "cannot be signed by RS256",
        ),
        ({"client_rsa_private_key": "MII"}, "is no private key in PEM"),
        ({"client_rsa_private_key": "-----BEGIN PRIVATE KEY-----\nhush"}, "is no private key in PEM for RS256"),
        (
            {"client_rsa_private_key": pem(EC_KEY), "client_jwt_assertion_alg": "RS256"},
            "is no private key in PEM for RS256",
        ),
        (
            {"client_rsa_private_key": pem(EC_KEY), "client_jwt_assertion_alg": "ES512"},
            "is no private key in PEM for ES512",
        ),
        ({"use_par": True}, "use_par is not taken; say it in par.enabled"),
        ({"accept_none_alg": True}, "accept_none_alg: must be false: anybody could write"),
        ({"dpop": {"enabled": True}}, "dpop needs private_key and public_jwk"),
        (
            {"dpop": {"enabled": True, "private_key": pem(EC_KEY), "public_jwk": {"kty": "EC", "d": "x"}}},
            "public_jwk has private parts",
        ),
        (
            {
                "dpop": {
                    "enabled": True,
                    "private_key": pem(EC_KEY),
                    "public_jwk": public_jwk(ec.generate_private_key(ec.SECP256R1()), "ES256"),
                }
            },
            "dpop.public_jwk is not the public half",
        ),
        (
            {"client_rsa_private_key": f"-----BEGIN PRIVATE KEY-----{'A' * 4096}"},
            "client_rsa_private_key has more than 4096 characters",
        ),
        ({"proxy_opts": {"http_proxy": "https://proxy:3128"}}, "a proxy is spoken to over HTTP"),
        ({"introspection_addon_headers": ["Authorization"]}, "written by the gateway alone"),
        ({"session": {**SESSION, "storage": "redis"}}, "storage redis needs redis.host"),
        (
            {"session": {**SESSION, "storage": "redis", "redis": {}, "idling_timeout": 0, "absolute_timeout": 0}},
            "needs idling_timeout or absolute_timeout",
        ),
        ({"session": {**SESSION, "redis": {"server_name": "x"}}}, "server_name differs from host"),
    ],
)
async def test_what_cannot_be_followed_is_refused_and_no_key_shown(config, words) -> None:
    async with site() as here:
        with pytest.raises(PluginRefused, match=words) as refused:
            here.chain(**{"session": SESSION, **config})
        assert "hush" not in str(refused.value)


@pytest.mark.parametrize(("nonce", "refusals"), [("", 0), ("n-1", 2)])
@pytest.mark.parametrize("key", [EC_KEY, rsa.generate_private_key(65537, 2048)])
async def test_tokens_are_bound_to_a_key(nonce, refusals, key) -> None:
    async with site() as here:
        algorithm = "ES256" if key is EC_KEY else "PS256"
        jwk = public_jwk(key, algorithm)
        dpop = {"enabled": True, "signing_alg": algorithm, "private_key": pem(key), "public_jwk": jwk}
        here.provider.nonce = nonce
        browser = Browser(here.chain(session=SESSION, dpop=dpop))
        location = (await browser.get()).headers.get("Location") or ""
        assert (await browser.get(here.provider.log_in(location))).status == 302
        assert (await browser.get()).status == 200
        [thumbprint] = set(here.provider.proven)
        assert f"dpop_jkt={thumbprint}" in location
        assert len(here.provider.proven) == 2, "for the tokens, and to be told of the user"
        assert here.provider.asked.count("/token") == (2 if nonce else 1)


async def test_a_token_that_the_provider_did_not_bind_is_not_taken() -> None:
    async with site() as here:
        dpop = {"enabled": True, "private_key": pem(EC_KEY), "public_jwk": public_jwk(EC_KEY, "ES256")}
        original = here.provider.tokens

        def unbound(claims: dict[str, str]) -> web.Response:
            here.provider.asked_with = {}
            return original(claims)

        here.provider.tokens = unbound  # type: ignore[method-assign]
        browser = Browser(here.chain(session=SESSION, dpop=dpop))
        assert (await browser.log_in(here.provider)).status == 503
        assert "session" not in browser.cookies


async def test_what_a_browser_is_sent_with_is_given_to_the_provider_beforehand() -> None:
    async with site() as here:
        par = {"enabled": True, "endpoint_auth_method": "client_secret_post"}
        browser = Browser(here.chain(session=SESSION, par=par, use_pkce=True, use_nonce=True))
        location = (await browser.get()).headers.get("Location") or ""
        assert "state" not in location
        assert (await browser.get(here.provider.log_in(location))).status == 302
        assert (await browser.get()).status == 200
        [pushed] = here.provider.pushed
        assert {"state", "nonce", "code_challenge", "redirect_uri", "client_secret"} <= pushed.keys()


async def test_the_provider_is_reached_by_a_proxy() -> None:
    async with site() as here:
        credentials = base64.b64encode(b"jack:pass").decode()

        def forward(seen: Seen) -> web.Response:
            # A proxy is asked with the whole URL; the path is the same.
            return here.provider.handle(seen.method, seen.target, seen.headers, seen.body)

        async with running(forward) as proxy:
            told = {"http_proxy": proxy.url, "http_proxy_authorization": f"Basic {credentials}"}
            plugins = here.chain(bearer_only=True, use_jwks=True, proxy_opts=told)
            assert await status(plugins, bearing(here.provider.sign())) == 200
            assert len(proxy.seen) == 2
            assert {seen.headers.get("Proxy-Authorization") for seen in proxy.seen} == {f"Basic {credentials}"}
            direct = here.chain(bearer_only=True, use_jwks=True, proxy_opts={**told, "no_proxy": "127.0.0.1"})
            assert await status(direct, bearing(here.provider.sign())) == 200
            assert len(proxy.seen) == 2


@asynccontextmanager
async def tunnelling(heads: list[bytes]) -> AsyncIterator[str]:
    """A proxy that makes tunnels, and keeps the heads by which it was asked for them."""

    async def copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError):
            while part := await reader.read(65536):
                writer.write(part)
                await writer.drain()
        writer.close()

    async def tunnel(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heads.append(head := await reader.readuntil(b"\r\n\r\n"))
        host, _, port = head.split(b" ")[1].decode().rpartition(":")
        upstream, onward = await asyncio.open_connection(host, int(port))
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
        await asyncio.gather(copy(reader, onward), copy(upstream, writer))

    server = await asyncio.start_server(tunnel, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"


async def test_a_provider_over_tls_is_reached_by_a_tunnel_that_hides_what_is_said() -> None:
    heads: list[bytes] = []
    provider = OpenidProvider()

    def handle(seen: Seen) -> web.Response:
        assert "Proxy-Authorization" not in seen.headers
        return provider.handle(seen.method, seen.target, seen.headers, seen.body)

    context = SelfSigned("127.0.0.1").server_context()
    async with tunnelling(heads) as proxy, running(handle, context) as service:
        provider.url = service.url
        told = {"https_proxy": proxy, "https_proxy_authorization": "Basic amFjazpwYXNz"}
        plugins = Site(provider, service.services).chain(
            bearer_only=True, use_jwks=True, ssl_verify=False, proxy_opts=told
        )
        assert await status(plugins, bearing(provider.sign())) == 200
    assert all(b"\r\nProxy-Authorization: Basic amFjazpwYXNz\r\n" in head for head in heads)
    assert heads


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("http://id.example/", "http://p:1"),
        ("https://id.example/", "http://p:2"),
        ("https://a.local/", None),
        ("https://local/", None),
        ("https://notlocal/", "http://p:2"),
        ("https://LOCAL.", "http://p:2"),
        ("https://b.inner/", None),
    ],
)
def test_hosts_below_those_named_are_asked_directly(url, expected) -> None:
    options = ProxyOpts(http_proxy="http://p:1", https_proxy="http://p:2", no_proxy=".local, *.inner")
    assert choose_proxy(options, url) == (None if expected is None else Proxy(expected))
    assert choose_proxy(options.model_copy(update={"no_proxy": "*"}), url) is None


async def test_headers_go_along_when_the_provider_is_asked_and_tell_its_answers_apart() -> None:
    async with site() as here:
        here.provider.active = {"t": {"active": True, "sub": "jack", "exp": 4_000_000_000}}
        plugins = here.chain(bearer_only=True, introspection_addon_headers=["X-Tenant"])
        for tenant in ("a", "b", "b"):
            assert await status(plugins, bearing("t", ("X-Tenant", tenant))) == 200
            assert here.provider.asked_with["X-Tenant"] == "b" or tenant == "a"
        assert here.provider.asked.count("/introspect") == 2


@pytest.mark.parametrize(("told", "expected"), [("openid read", 200), ("openid", 403)])
@pytest.mark.parametrize("by", ["answer", "access token", "ID token"])
async def test_sessions_have_the_scopes_that_a_login_was_granted(told, expected, by) -> None:
    async with site() as here:
        provider, original = here.provider, here.provider.tokens

        def tokens(claims: dict[str, str]) -> web.Response:
            more = {"scope": told} if by == "ID token" else {}
            answer = original({**claims, **more})
            if by == "ID token":
                return answer
            content = json.loads(answer.text or "")
            changed = {"scope": told} if by == "answer" else {"access_token": provider.sign(scope=told)}
            return web.json_response({**content, **changed})

        provider.tokens = tokens  # type: ignore[method-assign]
        browser = Browser(here.chain(session=SESSION, required_scopes=["read"]))
        await browser.log_in(provider)
        assert (await browser.get()).status == expected


async def test_sessions_hold_what_they_are_told_to() -> None:
    async with site() as here:
        contents = {"user": True}
        browser = Browser(here.chain(session=SESSION, session_contents=contents))
        await browser.log_in(here.provider)
        assert (await browser.get()).status == 200
        names = ("X-Userinfo", "X-ID-Token", "X-Access-Token", "X-Raw-ID-Token")
        assert [name in browser.told for name in names] == [True, False, False, False]
        raw = here.chain(session=SESSION, session_contents={"access_token": True}, set_raw_id_token_header=True)
        browser = Browser(raw)
        await browser.log_in(here.provider)
        await browser.get()
        assert [name in browser.told for name in names] == [False, False, True, True]


async def test_an_audience_that_is_to_match_has_to_be_there() -> None:
    async with site() as here:
        rule = {"audience": {"match_with_client_id": True}}
        plugins = here.chain(bearer_only=True, use_jwks=True, claim_validator=rule)
        response = await asked(plugins, bearing(here.provider.sign()))
        assert response is not None
        assert response.status == 401
