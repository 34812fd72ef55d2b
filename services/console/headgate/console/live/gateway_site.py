"""Asking a gateway's admin site why a request goes where it goes."""

from collections.abc import Sequence
from typing import Any, Final

import aiohttp

from headgate.operations.errors import InvalidRequest, StoresUnreachable

ASK_S: Final = 10.0


class GatewaySite:
    """The admin site of the gateways.

    Args:
        url: its base; empty if there is none.
    """

    def __init__(self, url: str) -> None:
        self.url = url
        self._session: aiohttp.ClientSession | None = None

    async def explain(self, method: str, url: str, headers: Sequence[tuple[str, str]], client: str = "") -> Any:
        """Return what becomes of a request, as `headgate explain --json` says it.

        Raises:
            InvalidRequest: the gateway cannot read the request.
            StoresUnreachable: no gateway answers, or none can be asked.
        """
        if not self.url:
            raise StoresUnreachable("this console knows no gateway to ask: give gateway_url")
        if self._session is None:
            self._session = aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=ASK_S))
        query = [("method", method), ("url", url), *(("header", f"{name}: {value}") for name, value in headers)]
        query += [("client", client)] if client else []
        try:
            async with self._session.get(f"{self.url}/explain", params=query) as answer:
                if answer.status == 400:
                    raise InvalidRequest((await answer.text()).strip()[:500])
                if answer.status != 200:
                    raise StoresUnreachable(f"{self.url} answered {answer.status}: is gateway_url right?")
                return await answer.json()
        except (aiohttp.ClientError, TimeoutError, ValueError) as error:
            raise StoresUnreachable(f"no gateway answers at {self.url} (gateway_url): {error or 'timeout'}") from error

    async def close(self) -> None:
        """Close its connections."""
        if self._session is not None:
            await self._session.close()
