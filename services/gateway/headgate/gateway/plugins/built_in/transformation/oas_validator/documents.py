"""The document that requests are compared with: one that is configured, or one that is fetched."""

import asyncio
from typing import Final

from headgate.common.effort import bounded_effort
from headgate.common.patterns import bounded_patterns
from headgate.common.plugins.transformation.oas_validator import OasValidatorConfig
from headgate.common.plugins.transformation.openapi import OpenApi
from headgate.gateway.plugins.interface import Headers, PluginServices, Request
from headgate.gateway.plugins.kit.calls import CallFailed, call_url

_MAX_DOCUMENT: Final = 1 << 20
_RETRY_S: Final = 5.0
"""Between two attempts to fetch a document that cannot be had."""


class NoDocument(Exception):
    """There is none now; the text says why."""


class _Fetched:
    """A document beyond one table."""

    def __init__(self) -> None:
        self.lock = asyncio.Lock()
        self.document: OpenApi | None = None
        self.fault = ""
        self.ends = 0.0


class Documents:
    """That of one use of the plugin."""

    def __init__(self, config: OasValidatorConfig, services: PluginServices) -> None:
        self._config = config
        self._services = services
        self._own = OpenApi(config.spec) if config.spec is not None else None
        headers = tuple((name, value.reveal()) for name, value in sorted(config.spec_url_request_headers.items()))
        self._headers = list(headers)
        place = ("oas-validator", services.owner, config.spec_url, headers, config.ssl_verify)
        self._fetched: _Fetched = services.shared.get(place, _Fetched)

    @property
    def at_hand(self) -> OpenApi | None:
        """The document, if nothing has to be waited for."""
        if self._own is not None:
            return self._own
        return self._fetched.document if self._services.clock() < self._fetched.ends else None

    async def get(self) -> OpenApi:
        """Return the document, fetched if need be; an old one is better than none. Raises NoDocument."""
        fetched, clock = self._fetched, self._services.clock
        async with fetched.lock:
            if clock() >= fetched.ends:
                try:
                    fetched.document, fetched.fault = await self._fetch(), ""
                    fetched.ends = clock() + self._config.spec_url_ttl
                except NoDocument as error:
                    fetched.fault = str(error)
                    fetched.ends = clock() + _RETRY_S
                    self._services.logger.error("oas-validator: %s", error)
        if fetched.document is None:
            raise NoDocument(fetched.fault)
        return fetched.document

    async def _fetch(self) -> OpenApi:
        config = self._config
        assert config.spec_url is not None
        asking = Request(headers=Headers(self._headers))
        try:
            answer = await call_url(
                self._services,
                config.spec_url,
                asking,
                timeout_s=config.timeout / 1000,
                max_body=_MAX_DOCUMENT,
                verify=config.ssl_verify,
            )
        except CallFailed as error:
            raise NoDocument(str(error)) from error
        if answer.status != 200:
            raise NoDocument(f"spec_url answered {answer.status}")
        try:
            return await asyncio.to_thread(_read, answer.body or b"")
        except ValueError as error:
            raise NoDocument(f"the document at spec_url {error}") from error


def _read(raw: bytes) -> OpenApi:
    with bounded_patterns(), bounded_effort():
        return OpenApi(raw.decode())
