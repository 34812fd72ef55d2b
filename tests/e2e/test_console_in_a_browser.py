"""The console in Chromium, at 10,000 routes with traffic and changes under way.

`HEADGATE_UPDATE_PICTURES=1` writes the pictures of docs/console.md.
"""

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest

from fakes.browser import Seen, browser, needs_chromium
from fakes.busy_console import FAILING, HOST, BusyConsole, busy_console

PICTURES = Path(__file__).parents[2] / "docs" / "pictures"
TAKES_PICTURES = "HEADGATE_UPDATE_PICTURES" in os.environ
PAGES = {
    "/": "Last change",
    "/routes": HOST,
    f"/why?request=http://{HOST}/": "sends it to",
    "/changes": "Compare",
    "/changes/diff?from=HEAD~1&to=HEAD": "changing-",
    "/fleet": "up to date",
    "/clusters": "local",
    "/endpoints?all=true": "127.0.0.1",
    "/objects": "ServiceNotFound",
    "/object?object=ingress/default/broken": "Service default/gone not found",
    "/certificates": "The table has none",
    "/live": FAILING,
}
FRAMES = """
() => new Promise((done) => {
  const lengths = []; let last = performance.now(), passed = 0;
  function frame(now) {
    lengths.push(now - last); last = now; scrollBy(0, 240);
    if (++passed < 120) requestAnimationFrame(frame); else done(lengths.slice(1));
  }
  requestAnimationFrame(frame);
})
"""

pytestmark = [needs_chromium, pytest.mark.slow]


async def picture(seen: Seen, name: str) -> None:
    if TAKES_PICTURES:
        PICTURES.mkdir(exist_ok=True)
        await seen.page.screenshot(path=PICTURES / f"console-{name}.png")


async def shows(seen: Seen, text: str) -> None:
    """Wait until the page shows a text."""
    await seen.page.get_by_text(text, exact=False).first.wait_for(timeout=20_000)


async def changing(made: BusyConsole) -> None:
    """Change a route again and again."""
    number = 2
    while True:
        await made.change(number)
        number += 1
        await asyncio.sleep(1)


async def test_a_person_finds_their_way(tmp_path: Path) -> None:
    async with busy_console(tmp_path) as made, browser() as seen:
        await made.change(1)
        await made.until("/traffic", lambda said: said["workers"])
        work = asyncio.create_task(changing(made))
        try:
            await every_page_shows_its_matter(made, seen)
            await a_long_list_is_scrolled(made, seen)
            await things_are_found_by_the_keyboard(made, seen)
            await figures_are_those_of_the_gateway(made, seen)
            await requests_come_and_can_be_paused(made, seen)
        finally:
            work.cancel()
        assert seen.complaints == []
        async with browser(390, 800, is_dark=True) as phone:
            await phone.page.goto(f"{made.url}/routes")
            await shows(phone, HOST)
            wide = await phone.page.evaluate("document.documentElement.scrollWidth - innerWidth")
            assert wide <= 0, f"{wide} pixels are beside a phone's screen"
            await picture(phone, "phone")


async def every_page_shows_its_matter(made: BusyConsole, seen: Seen) -> None:
    for path, text in PAGES.items():
        await seen.page.goto(f"{made.url}{path}")
        await shows(seen, text)
        assert await seen.page.locator("footer .command").inner_text()
        assert seen.complaints == [], path
        if path in ("/", "/routes", f"/why?request=http://{HOST}/"):
            await picture(seen, {"/": "now", "/routes": "routes"}.get(path, "why"))
    await seen.page.goto(f"{made.url}/routes?q={HOST}")
    await seen.page.get_by_role("link", name=HOST).first.click()
    await shows(seen, "Endpoints")
    await picture(seen, "route")


async def a_long_list_is_scrolled(made: BusyConsole, seen: Seen) -> None:
    await seen.page.goto(f"{made.url}/routes?by=host")
    rows = seen.page.locator("table.routes tbody tr")
    assert await rows.count() == 100
    lengths: list[float] = await seen.page.evaluate(FRAMES)
    assert await rows.count() > 100
    lengths.sort()
    late = sum(length > 33 for length in lengths)
    print(f"frames while scrolling: p50 {lengths[60]:.0f} ms, p99 {lengths[-2]:.0f} ms; {late} of 119 over 33 ms")


async def things_are_found_by_the_keyboard(made: BusyConsole, seen: Seen) -> None:
    await seen.page.goto(f"{made.url}/")
    await seen.page.keyboard.press("Control+k")
    await seen.page.keyboard.type("site-04999", delay=5)
    await seen.page.locator("#palette-found a").first.wait_for()
    await seen.page.keyboard.press("ArrowDown")
    await seen.page.keyboard.press("Enter")
    await seen.page.wait_for_url("**/route?name=site-04999**")
    await seen.page.keyboard.press("Control+k")
    await seen.page.keyboard.type("ingress/default/web", delay=5)
    await seen.page.keyboard.press("Enter")
    await seen.page.wait_for_url("**/object?object=ingress**")


async def figures_are_those_of_the_gateway(made: BusyConsole, seen: Seen) -> None:
    """What the page adds up over some time is what the gateway's own counter has grown by."""
    name = f"{HOST}|local/default/web prefix /"
    await seen.page.goto(f"{made.url}/route?name={name.replace('|', '%7C')}")
    await shows(seen, "requests/s")
    rate = float((await seen.page.locator(".figures b").first.inner_text()).replace(",", ""))
    counted = await requests_of_gateway(made)
    await asyncio.sleep(10)
    grown = (await requests_of_gateway(made)) - counted
    shown = float((await seen.page.locator(".figures b").first.inner_text()).replace(",", ""))
    assert rate > 0
    assert abs(shown * 10 - grown / 2) < 0.35 * grown / 2, (shown, grown)


async def requests_of_gateway(made: BusyConsole) -> int:
    """All requests that the gateway has had: one half goes to the route that is looked at."""
    beats: Any = await made.api("/fleet")
    return sum(beat["requests_total"] for beat in beats["items"])


async def requests_come_and_can_be_paused(made: BusyConsole, seen: Seen) -> None:
    await seen.page.goto(f"{made.url}/live?status=5")
    rows = seen.page.locator("#tail-rows tbody tr")
    await rows.first.wait_for()
    texts = await rows.all_inner_texts()
    assert all(FAILING in text for text in texts)
    await picture(seen, "live")
    await seen.page.get_by_role("button", name="Pause").click()
    held = await rows.count()
    await asyncio.sleep(2)
    assert await rows.count() == held
    await seen.page.goto(f"{made.url}/live?status=nonsense")
    await shows(seen, "The filter cannot be used")
    seen.complaints[:] = [text for text in seen.complaints if "400" not in text]
