"""Requests that plugins send themselves: to a URL, or to an upstream of the table."""

from collections.abc import Iterable
from typing import NamedTuple

import aiohttp
from yarl import URL

from headgate.common.plugins.called import CalledConfig
from headgate.common.plugins.fields import BadHeader, is_reserved
from headgate.common.trust import verifying_context
from headgate.gateway.net.destinations import DestinationDenied
from headgate.gateway.net.dialling import UNBOUNDED, Dialler
from headgate.gateway.plugins.interface import BodyTooLarge, PluginServices, Request, Response
from headgate.gateway.plugins.interface.headers import Headers
from headgate.gateway.plugins.interface.targets import Endpoints


class Proxy(NamedTuple):
    """By which a call goes out: its URL, and what it is told, as for `Proxy-Authorization`."""

    url: str
    authorization: str = ""


class CallFailed(Exception):
    """There is no answer, or none that can be used; the text says why."""


def make_client(dialler: Dialler = UNBOUNDED) -> aiohttp.ClientSession:
    """Make an HTTP client: no cookies, no redirects, nothing decoded. Needs a running event loop."""
    return aiohttp.ClientSession(
        auto_decompress=False,
        cookie_jar=aiohttp.DummyCookieJar(),
        connector=aiohttp.TCPConnector(
            limit=0, limit_per_host=256, socket_factory=dialler.open_socket, ssl=verifying_context()
        ),
        skip_auto_headers=("User-Agent", "Accept", "Accept-Encoding", "Content-Type"),
    )


class AnswerTooLong(CallFailed):
    """The answer has more bytes than are taken."""


async def call_url(
    services: PluginServices,
    url: str,
    request: Request,
    *,
    timeout_s: float,
    max_body: int,
    verify: bool = True,
    proxy: Proxy | None = None,
) -> Response:
    """Send a request (method, headers and `body`) to a URL and return the answer with its whole body.

    Raises:
        CallFailed: no answer in time.
        AnswerTooLong: it has more than `max_body` bytes.
    """
    headers = [(name, value) for name, value in request.headers if not is_reserved(name)]
    if request.upstream_host is not None:
        headers.append(("Host", request.upstream_host))
    login = {"Proxy-Authorization": proxy.authorization} if proxy is not None and proxy.authorization else {}
    if not url.startswith("https:"):
        # There is no CONNECT that it would go along with.
        headers += login.items()
    try:
        async with services.http().request(
            request.method,
            URL(url, encoded=True),
            headers=headers,
            data=request.body or None,
            allow_redirects=False,
            ssl=verify,
            proxy=None if proxy is None else URL(proxy.url),
            proxy_headers=login or None,
            timeout=aiohttp.ClientTimeout(total=timeout_s),
        ) as answer:
            parts = []
            size = 0
            async for part in answer.content.iter_chunked(65536):
                size += len(part)
                if size > max_body:
                    raise AnswerTooLong(f"{_shown(url)} answered with more than {max_body} bytes")
                parts.append(part)
            return Response(answer.status, readable_headers(answer.raw_headers), b"".join(parts), from_upstream=True)
    except TimeoutError as error:
        raise CallFailed(f"{_shown(url)} did not answer in time") from error
    except (aiohttp.ClientError, OSError, ValueError) as error:
        denied = error.os_error if isinstance(error, aiohttp.ClientConnectorError) else error
        if isinstance(denied, DestinationDenied):
            services.dialler.destinations.tell(denied, f"{request.route or services.scope} to {_shown(url)}")
        raise CallFailed(f"{_shown(url)} did not answer: {error}") from error


async def call(
    services: PluginServices, called: CalledConfig, request: Request, *, timeout_s: float, max_body: int
) -> Response:
    """Send a request to what the configuration names; see `call_url`. Its path is not looked at with a `uri`.

    Raises:
        CallFailed: no answer that can be used.
    """
    if called.uri is not None:
        verify = called.ssl_verify
        return await call_url(services, called.uri, request, timeout_s=timeout_s, max_body=max_body, verify=verify)
    assert called.upstream is not None
    return await call_upstream(services, called.upstream, request, timeout_s=timeout_s, max_body=max_body)


async def call_upstream(
    services: PluginServices, upstream: str | Endpoints, request: Request, *, timeout_s: float, max_body: int
) -> Response:
    """Send a request to an upstream of the table, by its key or as it was found. Raises CallFailed."""
    try:
        return await services.send_to(upstream, request, timeout_s=timeout_s, max_body=max_body)
    except TimeoutError as error:
        raise CallFailed(f"upstream {_key_of(upstream)} did not answer in time") from error
    except BodyTooLarge as error:
        raise AnswerTooLong(f"upstream {_key_of(upstream)} answered with more than {max_body} bytes") from error
    except OSError as error:
        raise CallFailed(f"upstream {_key_of(upstream)} did not answer: {error}") from error


def _key_of(upstream: str | Endpoints) -> str:
    return upstream if isinstance(upstream, str) else upstream.key


def readable_headers(raw: Iterable[tuple[bytes, bytes]]) -> Headers:
    """Take over the fields of an answer, without those of its framing and those that must not stand in a head."""
    headers = Headers()
    for name, value in raw:
        text = name.decode("latin-1")
        if not is_reserved(text):
            try:
                headers.add(text, value.decode("latin-1"))
            except BadHeader:
                continue
    return headers


def _shown(url: str) -> str:
    """Leave the query out: it may hold what is nobody's business."""
    return url.partition("?")[0]
