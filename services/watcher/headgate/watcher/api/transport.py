"""Requests to one API server, and streams of chunks from it.

TLS, client certificates, proxies and tokens are those of `kubernetes_asyncio`'s REST client, which is made again when
what it was made from has changed. Errors leave here as `headgate.watcher.errors`.
"""

import asyncio
import logging
import os
import socket
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import aiohttp

from headgate.common.resources import JsonObject
from headgate.watcher.api import untrusted
from headgate.watcher.api.config import RELOAD_S, InClusterLoader, KubeconfigLoader, find_loader
from headgate.watcher.api.wire import status_error
from headgate.watcher.errors import ApiUnreachable, ApiUntrusted, ClusterConfigError, WatchCut

FIELD_MANAGER = "headgate"
"""Under which name the API server notes what we write."""

log = logging.getLogger(__name__)

REQUEST_TIMEOUT_S = 75.0
"""The API server itself gives up after 60 s."""
CONNECT_TIMEOUT_S = 15.0
DEAD_PEER_S = 30
"""The kernel gives a connection up when what we sent is not confirmed for this long."""
_REFUSED_RELOAD_S = 5.0
_READ_ERRORS = (aiohttp.ClientError, TimeoutError, OSError)


class _Session:
    """A REST client with its configuration; closed when it is retired and its last user is done."""

    def __init__(self, configuration: Any) -> None:
        from kubernetes_asyncio.client.rest import RESTClientObject

        configuration.connection_pool_maxsize = 0  # each watch holds a connection; there is no useful limit
        self.configuration = configuration
        self.fingerprint = _fingerprint(configuration)
        self.rest = RESTClientObject(configuration)
        self.users = 0
        self.is_retired = False

    @asynccontextmanager
    async def use(self) -> AsyncIterator["_Session"]:
        self.users += 1
        try:
            yield self
        finally:
            self.users -= 1
            await self.close_if_idle()

    async def close_if_idle(self) -> None:
        if self.is_retired and not self.users:
            await self.rest.close()


class KubernetesTransport:
    """One API server, as one identity."""

    def __init__(self, kubeconfig: Path | None = None, context: str | None = None) -> None:
        """Choose the server; nothing is read before the first request.

        Args:
            kubeconfig: the file; None looks where kubectl looks, and for a service account.
            context: one of the file's contexts; None takes its current one.
        """
        self._loader: KubeconfigLoader | InClusterLoader = find_loader(kubeconfig, context)
        self._session: _Session | None = None
        self._loaded_at = 0.0
        self._loading = asyncio.Lock()
        self.heard_at: datetime | None = None
        """When the server last answered well, or a watch last said something."""
        self.away_since: datetime | None = None
        """When it began to give no answer at all; None: the last request was answered."""

    @property
    def description(self) -> str:
        """For messages: the server's URL, and where it comes from."""
        where = f"{self._session.configuration.host} " if self._session else ""
        return f"{where}({self._loader.origin})"

    async def prepare(self) -> None:
        """Read the configuration now, so that a mistake in it is heard of at once.

        Raises:
            ClusterConfigError: it cannot be used.
        """
        await self._current()

    async def close(self) -> None:
        """Close all connections that are not in use, the others when they are let go."""
        session, self._session = self._session, None
        if session is not None:
            await self._retire(session)

    async def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: JsonObject | None = None,
        content_type: str = "application/json",
        timeout_s: float = REQUEST_TIMEOUT_S,
    ) -> bytes:
        """Make a request and return the body of a 2xx answer.

        Raises:
            ApiStatusError: the server answered with another status.
            ApiUnreachable: no complete answer.
            ClusterConfigError: it is not known which server to ask, or as whom.
        """
        timeout = aiohttp.ClientTimeout(total=timeout_s, connect=CONNECT_TIMEOUT_S)
        async with self._answer(method, path, query, timeout, body, content_type) as answer:
            return await _read(answer)

    @asynccontextmanager
    async def stream(
        self, path: str, query: Mapping[str, str], *, silence_s: float
    ) -> AsyncIterator[AsyncIterator[bytes]]:
        """Open a watch and yield its body in chunks as they arrive.

        The body ends cleanly, or with `WatchCut`. Time without data is for the reader to judge; until the head
        of the answer arrives it is `silence_s`.

        Raises:
            ApiStatusError, ApiUnreachable, ClusterConfigError: as `request`.
        """
        timeout = aiohttp.ClientTimeout(total=None, connect=CONNECT_TIMEOUT_S)
        async with self._answer("GET", path, query, timeout, head_timeout_s=silence_s) as answer:
            _notice_dead_peer(answer)
            yield self._chunks(answer)

    async def _chunks(self, answer: aiohttp.ClientResponse) -> AsyncIterator[bytes]:
        try:
            async for chunk in answer.content.iter_any():
                self._hear()
                yield chunk
        except _READ_ERRORS as error:
            raise WatchCut(f"the watch broke off: {_describe(error)}") from error

    @asynccontextmanager
    async def _answer(
        self,
        method: str,
        path: str,
        query: Mapping[str, str] | None,
        timeout: aiohttp.ClientTimeout,
        body: JsonObject | None = None,
        content_type: str = "application/json",
        head_timeout_s: float | None = None,
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        session = await self._current()
        async with session.use():
            headers = {"Accept": "application/json", "Content-Type": content_type, "User-Agent": "headgate-watcher"}
            try:
                if token := await session.configuration.get_api_key_with_prefix("BearerToken"):
                    headers["Authorization"] = token.strip()
                async with asyncio.timeout(head_timeout_s):
                    answer: aiohttp.ClientResponse = await session.rest.request(
                        method,
                        session.configuration.host + path,
                        query_params=dict(query or {}),
                        headers=headers,
                        body=body,
                        _preload_content=False,
                        _request_timeout=timeout,
                    )
            except _READ_ERRORS as error:
                self.away_since = self.away_since or datetime.now(UTC)
                if isinstance(error, aiohttp.ClientConnectorCertificateError):
                    raise ApiUntrusted(await untrusted.explain(error, session.configuration)) from error
                raise ApiUnreachable(_describe(error)) from error
            self.away_since = None
            try:
                if not 200 <= answer.status <= 299:
                    if answer.status == 401:
                        self._distrust(session)
                    raise status_error(answer.status, await _read(answer), answer.headers.get("Retry-After"))
                self._hear()
                yield answer
            finally:
                answer.close()

    def _hear(self) -> None:
        self.heard_at, self.away_since = datetime.now(UTC), None

    async def _current(self) -> _Session:
        async with self._loading:
            now = asyncio.get_running_loop().time()
            if self._session is None or now - self._loaded_at >= RELOAD_S:
                await self._reload()
                self._loaded_at = now
            assert self._session is not None
            return self._session

    async def _reload(self) -> None:
        try:
            configuration = await self._loader.load()
            if self._session is not None and self._session.fingerprint == _fingerprint(configuration):
                self._session.configuration = configuration  # the token may be a new one
                return
            session = _Session(configuration)
        except (ClusterConfigError, OSError, ssl.SSLError) as error:
            if self._session is not None:
                log.warning("%s; going on with what was read before", error)
                return
            if isinstance(error, ClusterConfigError):
                raise
            raise ClusterConfigError(f"{self._loader.origin}: certificates cannot be used: {error}") from error
        if self._session is not None:
            await self._retire(self._session)
        self._session = session

    def _distrust(self, session: _Session) -> None:
        """Read the credentials again before the next request: the server refuses these."""
        age = asyncio.get_running_loop().time() - self._loaded_at
        if session is self._session and age >= _REFUSED_RELOAD_S:
            self._loader.forget_token()
            self._loaded_at -= RELOAD_S

    @staticmethod
    async def _retire(session: _Session) -> None:
        session.is_retired = True
        await session.close_if_idle()


async def _read(answer: aiohttp.ClientResponse) -> bytes:
    try:
        return await answer.read()
    except _READ_ERRORS as error:
        raise ApiUnreachable(f"the answer broke off: {_describe(error)}") from error


def _notice_dead_peer(answer: aiohttp.ClientResponse) -> None:
    transport = answer.connection.transport if answer.connection else None
    sock = transport.get_extra_info("socket") if transport else None
    if sock is None:
        return
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    if hasattr(socket, "TCP_USER_TIMEOUT"):  # Linux
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, DEAD_PEER_S * 1000)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, DEAD_PEER_S // 2)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 5)


def _fingerprint(configuration: Any) -> tuple[object, ...]:
    """What a REST client is made from; certificates by the files' identity."""
    files = (configuration.ssl_ca_cert, configuration.cert_file, configuration.key_file)
    stamps = tuple(os.stat(path).st_mtime_ns if path and os.path.exists(path) else None for path in files)
    names = ("host", "verify_ssl", "tls_server_name", "proxy")
    return (*files, *stamps, *(getattr(configuration, name) for name in names))


def _describe(error: BaseException) -> str:
    return str(error) or type(error).__name__
