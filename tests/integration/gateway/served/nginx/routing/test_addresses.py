"""What ingress-nginx' annotations make of addresses in answers: the cases of `test/e2e/annotations/proxy.go`."""

import pytest

from fakes.gateway.proxied import answering
from fakes.translator.applied import World, world
from fakes.translator.nginx import nginx_ingress

ANSWER = (
    b"HTTP/1.1 302 Found\r\nLocation: http://hello.com/x\r\nSet-Cookie: a=b; Domain=localhost; Path=/one/x\r\n"
    b"Content-Length: 0\r\n\r\n"
)


async def got(made: World, **annotations: str) -> tuple[str, str]:
    """Return the location and the cookie of an answer."""
    made.proxy.apply(nginx_ingress(**annotations))
    answer = await made.proxy.get()
    return answer["location"], answer["set-cookie"]


@pytest.mark.parametrize(
    ("start", "end", "location"),
    [
        ("off", "goodbye.com", "http://hello.com/x"),
        ("default", "goodbye.com", "http://hello.com/x"),
        ("http://hello.com/", "https://goodbye.com/", "https://goodbye.com/x"),
        ("http://hello.com", "/shop", "http://a.example/shop/x"),
        ("http://hello.com/", "off", "http://hello.com/x"),
        ("hello.com", "goodbye.com", "http://hello.com/x"),
        ("~hello", "https://goodbye.com", "https://goodbye.com"),
    ],
)
async def test_redirects_of_upstreams_are_rewritten(start: str, end: str, location: str) -> None:
    async with world(one=answering(ANSWER)) as made:
        assert (await got(made, proxy_redirect_from=start, proxy_redirect_to=end))[0] == location


@pytest.mark.parametrize(
    ("annotations", "cookie"),
    [
        ({"proxy_cookie_domain": "localhost example.org"}, "a=b; Domain=example.org; Path=/one/x"),
        (
            {"proxy_cookie_domain": "localhost example.org", "proxy_cookie_path": "/one/ /"},
            "a=b; Domain=example.org; Path=/x",
        ),
        ({"proxy_cookie_path": "/one/ /"}, "a=b; Domain=localhost; Path=/x"),
        ({"proxy_cookie_path": "off", "proxy_cookie_domain": "off"}, "a=b; Domain=localhost; Path=/one/x"),
        ({"proxy_cookie_path": "/one;x /"}, "a=b; Domain=localhost; Path=/one/x"),
    ],
)
async def test_cookies_of_upstreams_are_rewritten(annotations: dict[str, str], cookie: str) -> None:
    async with world(one=answering(ANSWER)) as made:
        assert (await got(made, **annotations))[1] == cookie
