"""Chromium, if this machine has it: pages as people see them."""

import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from playwright.async_api import ConsoleMessage, Page, async_playwright

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
needs_chromium = pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed")


class Seen:
    """A page, and what its browser had to complain about."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.complaints: list[str] = []
        page.on("console", self._note)
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("requestfailed", self._note_failure)

    def _note(self, said: ConsoleMessage) -> None:
        if said.type in ("error", "warning"):
            self.complaints.append(f"{said.text} {said.location.get('url', '')}".rstrip())

    def _note_failure(self, request: object) -> None:
        url, failure = getattr(request, "url", ""), getattr(request, "failure", "")
        # Leaving a page ends what it was listening to.
        if "ERR_ABORTED" not in str(failure):
            self.complaints.append(f"{url}: {failure}")


@asynccontextmanager
async def browser(width: int = 1280, height: int = 900, *, is_dark: bool = False) -> AsyncIterator[Seen]:
    """Run a browser with one page."""
    async with async_playwright() as playwright:
        running = await playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        try:
            page = await running.new_page(
                viewport={"width": width, "height": height}, color_scheme="dark" if is_dark else "light"
            )
            yield Seen(page)
        finally:
            await running.close()
