import base64
import json

from headgate.gateway.plugins.interface import Response
from unit.gateway.plugins.running import answered, asked, chain, request

CONFIG = {"key": "a secret"}


async def token_of(config=CONFIG) -> str:
    response = await answered(chain(("csrf", config)), request(), Response(200))
    cookie = response.headers.get("Set-Cookie")
    assert cookie is not None
    assert "path=/;SameSite=Lax;Expires=" in cookie
    return cookie.partition("=")[2].partition(";")[0]


async def refusal(headers, config=CONFIG, method="POST"):
    response = await asked(chain(("csrf", config)), request("/", headers, method=method))
    if response is None:
        return None
    assert response.status == 401
    return json.loads(response.body or b"")["error_msg"]


def both(token: str, name: str = "apisix-csrf-token"):
    return [(name, token), ("Cookie", f"other=1; {name}={token}")]


async def test_write_with_the_token_twice_passes() -> None:
    assert await refusal(both(await token_of())) is None


async def test_reads_need_no_token() -> None:
    for method in ("GET", "HEAD", "OPTIONS"):
        assert await refusal([], method=method) is None


async def test_write_without_header_or_cookie_is_refused() -> None:
    token = await token_of()
    assert await refusal([("Cookie", f"apisix-csrf-token={token}")]) == "no csrf token in headers"
    assert await refusal([("apisix-csrf-token", token)]) == "no csrf cookie"


async def test_two_tokens_that_differ_are_refused() -> None:
    headers = [("apisix-csrf-token", await token_of()), ("Cookie", f"apisix-csrf-token={await token_of()}")]
    assert await refusal(headers) == "csrf token mismatch"


async def test_token_of_another_key_is_refused() -> None:
    forged = await token_of({"key": "another"})
    for token in (forged, "none", base64.b64encode(b"[]").decode(), base64.b64encode(b'{"random":1}').decode()):
        assert await refusal(both(token)) == "Failed to verify the csrf token signature"


async def test_token_lasts_as_long_as_it_is_told_to(monkeypatch) -> None:
    monkeypatch.setattr("time.time", lambda: 1_000_000.0)
    token = await token_of()
    monkeypatch.setattr("time.time", lambda: 1_000_000.0 + 7200)
    assert await refusal(both(token)) is None
    monkeypatch.setattr("time.time", lambda: 1_000_000.0 + 7201)
    assert await refusal(both(token)) is not None
    assert await refusal(both(token), {**CONFIG, "expires": 0}) is None


async def test_token_may_have_another_name() -> None:
    config = {**CONFIG, "name": "X-Token"}
    response = await answered(chain(("csrf", config)), request(), Response(404))
    assert (response.headers.get("Set-Cookie") or "").startswith("X-Token=")
    assert await refusal(both(await token_of(config), "X-Token"), config) is None


async def test_a_token_with_a_time_beyond_all_numbers_is_refused() -> None:
    token = base64.b64encode(b'{"random": "a", "expires": 1e999, "sign": "b"}').decode()
    assert await refusal(both(token)) == "Failed to verify the csrf token signature"
