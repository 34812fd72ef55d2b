"""Another release under load, and back: `make stack-test`. In the documented order, and the wrong one.

What stands for the next release is this one with a schema greater by one: gateways of now cannot read its tables. The
release before is tried if there is one: `STACK_BEFORE=v1.2.3` names a tag of images that are here, or a revision of
this repository, of which they are made.
"""

import json
import os
from pathlib import Path

import pytest

from headgate.common.snapshot import SCHEMA
from stack.engine import BUILD_S, docker, eventually, hear, run
from stack.running import Stack, answered_by_red_alone, load

NEXT = "next-schema"
UP = ("gateway", "translator", "watcher")
DOWN = ("watcher", "translator", "gateway")
RAISE_SCHEMA = f"""
import pathlib, headgate.common.snapshot as snapshot
path = pathlib.Path(snapshot.__file__)
before, _, after = path.read_text().partition("SCHEMA = {SCHEMA}\\n")
assert after
path.write_text(before + "SCHEMA = {SCHEMA + 1}\\n" + after)
"""
pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.timeout(BUILD_S)]


@pytest.fixture(scope="module")
def before() -> str:
    """A tag of images of an earlier release."""
    named = os.environ.get("STACK_BEFORE", "")
    if not named:
        pytest.skip("no release of before is named: STACK_BEFORE=TAG, or a revision of this repository")
    return named


async def make_images_of(revision: str, folder: Path) -> None:
    """Make what is not here, from the sources of a revision and with its own Dockerfile."""
    missing = [each for each in UP if not await docker("image", "ls", "--quiet", f"headgate/{each}:{revision}")]
    if missing:
        await run("git", "archive", "--output", str(folder / "sources.tar"), revision)
        await run("tar", "--extract", "--file", str(folder / "sources.tar"), "--directory", str(folder))
    for each in missing:
        name = f"headgate/{each}:{revision}"
        await docker("build", "--quiet", "--target", each, "--tag", name, str(folder), within_s=BUILD_S)


async def make_images_of_next_schema(folder: Path) -> None:
    for each in UP:
        change = json.dumps(["python3", "-c", RAISE_SCHEMA])
        lines = [f"FROM headgate/{each}:latest", "USER 0", f"RUN {change}", "USER 65532:65532", ""]
        (folder / "Dockerfile").write_text("\n".join(lines))
        await docker("build", "--quiet", "--tag", f"headgate/{each}:{NEXT}", str(folder), within_s=BUILD_S)


async def is_followed(stack: Stack) -> None:
    """Wait until a certificate, a change of endpoints, and then its taking back, are served by every gateway."""
    serial = await stack.exchange_certificate()
    for gateway in await stack.containers("gateway"):
        await eventually("a certificate is presented", lambda gateway=gateway: stack.presents(gateway, serial))
    for ready in (False, True):
        await stack.let_blue_be_ready(ready)
        for gateway in await stack.containers("gateway"):

            async def is_served(gateway: str = gateway, by_red_alone: bool = not ready) -> bool:
                return await answered_by_red_alone(gateway) == by_red_alone

            await eventually("a change is served", is_served)


async def test_a_release_is_exchanged_for_the_one_before_and_back_without_a_failed_request(
    stack: Stack, before: str, tmp_path: Path
) -> None:
    await make_images_of(before, tmp_path)
    await stack.start(gateways=2, HEADGATE_TAG=before)
    await is_followed(stack)
    for order in (UP, DOWN):
        async with load(stack, tls=True):
            await stack.replace(*order)
            await is_followed(stack)
            await stack.replace(*DOWN, HEADGATE_TAG=before)
            await is_followed(stack)


async def test_a_release_with_a_greater_schema_and_back_fails_no_request(stack: Stack, tmp_path: Path) -> None:
    await stack.start(gateways=2)
    await is_followed(stack)
    await make_images_of_next_schema(tmp_path)
    async with load(stack, tls=True):
        await stack.replace(*UP, HEADGATE_TAG=NEXT)
        await is_followed(stack)
        await stack.replace(*DOWN)
        await is_followed(stack)


async def test_the_wrong_order_leaves_the_last_table_in_service_and_says_what_to_do(stack: Stack) -> None:
    await stack.start(gateways=2)
    await is_followed(stack)
    gateways = await stack.wait_for_gateways(2)
    async with load(stack, *gateways, tls=True):
        await stack.replace("translator", HEADGATE_TAG=NEXT)
        await stack.let_blue_be_ready(False)
        for gateway in gateways:

            async def says_it(gateway: str = gateway) -> bool:
                return "upgrade the gateways" in await hear("docker", "logs", gateway)

            await eventually(f"{gateway} says what to do", says_it)
            assert not await answered_by_red_alone(gateway)
        assert "upgrade the gateways" in await stack.ask("status")
    async with load(stack, tls=True):
        await stack.replace("gateway", HEADGATE_TAG=NEXT)
        gateways = await stack.containers("gateway")
        for gateway in gateways:
            await eventually("the change is served", lambda gateway=gateway: answered_by_red_alone(gateway))
        with pytest.raises(AssertionError, match=r"(?s)upgrade the gateways.*a new gateway was not ready"):
            await stack.replace("gateway", STACK_WAIT_S="20")
        assert await stack.containers("gateway") == gateways
        await stack.replace("translator", "gateway")
        await is_followed(stack)
