"""What the watcher and the translator of an `up` say on their admin sites: readiness, and what they could not use."""

import asyncio
import json
from typing import Any

import aiohttp
from pydantic import BaseModel, ConfigDict, ValidationError

from headgate.common.problems import Problem
from headgate.operations.status.up_state import UpState

ASK_S = 2.0


class PageProblem(BaseModel):
    """An entry of the watcher's `/problems`."""

    model_config = ConfigDict(frozen=True)

    file: str = ""
    """Empty unless it is about a file."""
    line: int = 0
    object: str = ""
    problem: Problem

    @property
    def what(self) -> str:
        """File, line and object that it is about."""
        where = f"{self.file}:{self.line}" if self.line else self.file
        return ", ".join(part for part in (where, self.object) if part)


class ServicePage(BaseModel):
    """The admin site of one service."""

    model_config = ConfigDict(frozen=True)

    service: str
    url: str
    is_away: bool = False
    checks: dict[str, str | None] = {}
    """Readiness by name of the check; None is content."""
    problems: tuple[PageProblem, ...] = ()

    @property
    def complaints(self) -> list[tuple[str, Problem]]:
        """Problems of the service itself."""
        if self.is_away:
            unknown = "; which files are broken is unknown" if self.service == "watcher" else ""
            message = f"no answer from its admin site {self.url}{unknown}"
            return [(self.service, Problem(reason="NoAnswer", message=message))]
        return [
            (self.service, Problem(reason="NotReady", message=f"{name}: {told}"))
            for name, told in self.checks.items()
            if told
        ]


async def read_pages(up: UpState) -> list[ServicePage]:
    """Ask every service that has an admin site; one that does not answer is said to be away."""
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=ASK_S)) as session:
        return list(await asyncio.gather(*(_read(session, name, url) for name, url in sorted(up.admin_urls.items()))))


async def _read(session: aiohttp.ClientSession, service: str, url: str) -> ServicePage:
    try:
        checks = (await _get(session, f"{url}/readyz")).get("checks", {})
        problems = (await _get(session, f"{url}/problems")).get("problems", []) if service == "watcher" else []
        return ServicePage.model_validate({"service": service, "url": url, "checks": checks, "problems": problems})
    except (aiohttp.ClientError, TimeoutError, ValueError, ValidationError):
        return ServicePage(service=service, url=url, is_away=True)


async def _get(session: aiohttp.ClientSession, url: str) -> dict[str, Any]:
    async with session.get(url) as answer:
        found: Any = json.loads(await answer.read())
    if not isinstance(found, dict):
        raise ValueError(f"{url} is not a page of ours")
    return found
