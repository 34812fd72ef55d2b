"""The images: what each holds, and that it runs with no right, on bases with and without a shell: `make stack-test`.

Not collected by `pytest` unless it is named: docker is needed, with the base images that the Dockerfile names.
"""

import json
import re
import tomllib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.metadata import PackageNotFoundError, distribution
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from stack.engine import BUILD_S, ROOT, docker, eventually, inspect, run

PROJECTS = {
    "watcher": "services/watcher",
    "translator": "services/translator",
    "gateway": "services/gateway",
    "console": "services/console",
    "headgate": "cli",
}
WITHOUT_SHELL = "gcr.io/distroless/python3-debian12"
BASES = {"": "python:3.11-slim-bookworm", ":without-shell": WITHOUT_SHELL}

LIST = """
import importlib.metadata as metadata, json, platform
found = {each.name: each.version for each in metadata.distributions(path=["/opt/headgate"])}
print(json.dumps({"python": platform.python_version(), "found": found}))
"""
LOAD = """
import ctypes, importlib, pathlib
folder = pathlib.Path("/opt/headgate")
for path in sorted(folder.rglob("*.so*")):
    if ".cpython-" in path.name or ".abi3." in path.name:
        importlib.import_module(".".join([*path.relative_to(folder).parts[:-1], path.name.split(".")[0]]))
    else:
        ctypes.CDLL(str(path))
    print(path)
"""

pytestmark = pytest.mark.timeout(BUILD_S)


@pytest.fixture(params=PROJECTS)
async def image(request: pytest.FixtureRequest) -> str:
    """Each image, made of the present sources."""
    return await build(request.param, "")


@pytest.fixture(params=[(target, tag) for target in PROJECTS for tag in BASES], ids="".join)
async def based(request: pytest.FixtureRequest) -> str:
    """Each image on each base."""
    target, tag = request.param
    if not await docker("image", "ls", "--quiet", BASES[tag]):
        pytest.skip(f"no image {BASES[tag]} is here: pull it, or make a stand-in with deploy/stand-ins/make")
    return await build(target, tag)


async def build(target: str, tag: str) -> str:
    name = f"headgate/{target}{tag}"
    arguments = ["--target", target, "--tag", name, "--build-arg", f"RUNTIME={BASES[tag]}"]
    await run("docker", "build", "--quiet", *arguments, ".", within_s=BUILD_S)
    return name


async def python(image: str, code: str) -> str:
    return await docker("run", "--rm", "--network", "none", "--entrypoint", "python3", image, "-c", code)


def target_of(image: str) -> str:
    return image.removeprefix("headgate/").split(":")[0]


def closure(project: str, python_version: str) -> set[str]:
    """What a pyproject.toml depends on, and what that depends on, by what is installed here: the same lock file."""
    found = set[str]()
    waiting = [
        (Requirement("headgate-ingress" if project == "cli" else f"headgate-ingress-{project.split('/')[1]}"), "")
    ]
    while waiting:
        wanted, extra = waiting.pop()
        name = canonicalize_name(wanted.name)
        if wanted.marker and not wanted.marker.evaluate({"python_full_version": python_version, "extra": extra}):
            continue
        found.add(name)
        below = [Requirement(each) for each in requirements(name)]
        for wished in ("", *wanted.extras):
            waiting += [(each, wished) for each in below if bool(wished) == ("extra" in str(each.marker))]
    return found


def requirements(name: str) -> list[str]:
    for path in (ROOT / "cli", ROOT / "libs" / "common", *(ROOT / "services").iterdir()):
        read = tomllib.loads((path / "pyproject.toml").read_text())["project"]
        if read["name"] == name:
            return list(read["dependencies"])
    try:
        return distribution(name).requires or []
    except PackageNotFoundError:
        return []  # What this Python does not need itself, as async-timeout, depends on nothing.


async def test_an_image_holds_what_its_service_depends_on_and_nothing_else(image: str) -> None:
    listed = json.loads(await python(image, LIST))
    found = {canonicalize_name(name): version for name, version in listed["found"].items()}
    assert set(found) == closure(PROJECTS[target_of(image)], listed["python"])
    locked = dict(re.findall(r"^([a-z0-9-]+)==(\S+)", (ROOT / "requirements.lock").read_text(), re.MULTILINE))
    assert {name: found[name] for name in found if not name.startswith("headgate")}.items() <= locked.items()
    print(f"{image}: {len(found)} distributions, {(await inspect(image))['Size'] / 1e6:.0f} MB")


async def test_every_compiled_module_of_an_image_can_be_loaded(based: str) -> None:
    loaded = await python(based, LOAD)
    assert "pydantic_core" in loaded
    # A proxy that is not compiled serves all the same, and takes more processor time.
    assert ("/headgate/gateway/_engine_" in loaded) == (target_of(based) in ("gateway", "headgate"))


async def test_an_image_says_what_it_is_and_asks_for_no_right(image: str) -> None:
    config = (await inspect(image))["Config"]
    assert config["User"] == "65532:65532"
    assert config["Healthcheck"]["Test"][0] == "CMD"
    assert config["Entrypoint"][0] == "python3"
    labels = {name.removeprefix("org.opencontainers.image."): text for name, text in config["Labels"].items()}
    assert set(labels) >= {"title", "description", "licenses", "version"}
    assert all(labels.values())


async def test_an_image_has_the_licence_and_a_check_that_needs_no_interpreter(image: str) -> None:
    config = (await inspect(image))["Config"]
    assert config["Healthcheck"]["Test"] == ["CMD", "healthcheck"]
    assert "Apache License" in await python(image, "print(open('/usr/share/doc/headgate/LICENSE').read())")


async def test_an_image_runs_with_no_right_and_ends_on_sigterm_by_itself(based: str) -> None:
    async with running(based) as container:

        async def is_healthy() -> bool:
            state: dict[str, Any] = (await inspect(container))["State"]
            assert state["Running"], await docker("logs", container)
            return bool(state["Health"]["Status"] == "healthy")

        await eventually(f"{based} is healthy", is_healthy)
        await docker("stop", "--time", "60", container)
        state = (await inspect(container))["State"]
        assert (state["ExitCode"], state["OOMKilled"]) == (0, False), await docker("logs", container)


async def test_the_base_without_a_shell_has_none() -> None:
    if not await docker("image", "ls", "--quiet", WITHOUT_SHELL):
        pytest.skip(f"no image {WITHOUT_SHELL} is here")
    code = "import shutil; print([shutil.which(name, path='/bin:/usr/bin') for name in ('sh', 'bash', 'dash', 'ls')])"
    assert await python(await build("watcher", ":without-shell"), code) == "[None, None, None, None]"


@asynccontextmanager
async def running(image: str) -> AsyncIterator[str]:
    """A container of an image with everything taken away that can be, where no NATS is."""
    bounds = ["--read-only", "--cap-drop=ALL", "--security-opt=no-new-privileges", "--pids-limit=100", "--memory=1g"]
    folder = f"{ROOT}/examples/stack:/manifests:ro"
    settings = ["--env", "HEADGATE_MANIFESTS=/manifests"] if target_of(image) == "watcher" else []
    container = await docker(
        "run",
        "--detach",
        *bounds,
        "--tmpfs=/var/lib/headgate:uid=65532,mode=0700",
        f"--volume={folder}",
        *settings,
        image,
    )
    try:
        yield container
    finally:
        await docker("rm", "--force", "--volumes", container)
