"""What compiling leaves behind, with real compilers, on a gateway whose only code is two functions."""

import asyncio
import fcntl
import json
import os
import shutil
import signal
import subprocess
import sys
import sysconfig
import tarfile
import zipfile
from pathlib import Path

import pytest

import headgate.gateway
from fakes.waiting import until

ROOT = Path(headgate.gateway.__file__).parents[2]
PROBE = """from collections.abc import Awaitable

def origin() -> str:
    return 'compiled' if '.so' in __file__ else 'source'

async def wait_for(awaited: Awaitable[None]) -> None:
    await awaited
"""
FAIL = """import asyncio
from headgate.gateway.proxy import probe

async def main():
    loop = asyncio.get_running_loop()
    future = loop.create_future()
    loop.call_soon(future.set_exception, KeyError('late'))
    await probe.wait_for(future)

try:
    asyncio.run(main())
except Exception as error:
    print(probe.origin(), repr(error))"""
SHOW = """from headgate.gateway import ENGINE
from headgate.gateway.proxy import probe
from headgate.gateway.proxy.inner import leaf
print(ENGINE, probe.origin() if leaf.VALUE else "")"""
BOUND_S = 200


def make_tree(root: Path) -> Path:
    """Write a checkout of the gateway with the build of the real one."""
    package = root / "headgate" / "gateway"
    (package / "proxy").mkdir(parents=True)
    for name in ("hatch_build.py", "mypyc.ini", "pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, root)
    shutil.copy(headgate.gateway.__file__, package)
    (package / "proxy" / "inner").mkdir()
    for folder in ("proxy", "proxy/inner"):
        (package / folder / "__init__.py").write_text("")
    (package / "proxy" / "inner" / "leaf.py").write_text("VALUE = 1\n")
    (package / "proxy" / "probe.py").write_text(PROBE)
    listed = python(root, "import hatch_build; print(*hatch_build.sources())").stdout.split()
    for path in map(Path, listed):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    return root


def python(root: Path, code: str, **settings: str) -> subprocess.CompletedProcess[str]:
    """Run code in a tree."""
    return start(root, "-c", code, **settings)


def compile_tree(root: Path, **settings: str) -> subprocess.CompletedProcess[str]:
    """Compile a tree as `make accelerate` does."""
    return start(root, "hatch_build.py", **settings)


def build(root: Path, target: str) -> Path:
    """Build a distribution of a tree, hook and all."""
    done = start(root, "-m", "hatchling", "build", "--target", target, "--directory", "dist")
    assert done.returncode == 0, done.stderr
    (made,) = (root / "dist").iterdir()
    return made


def start(root: Path, *command: str, **settings: str) -> subprocess.CompletedProcess[str]:
    arguments, environment = [sys.executable, *command], environment_of(root, **settings)
    return subprocess.run(
        arguments, cwd=root, env=environment, capture_output=True, text=True, timeout=BOUND_S, check=False
    )


def environment_of(root: Path, **settings: str) -> dict[str, str]:
    """Return the variables of this process without `HEADGATE_ENGINE`, for one that works in a tree."""
    environment = {name: value for name, value in os.environ.items() if name != "HEADGATE_ENGINE"}
    return {**environment, "PYTHONPATH": str(root), **settings}


def is_locked(path: Path) -> bool:
    """Say whether a process holds a lock on a file."""
    if not path.exists():
        return False
    with path.open() as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tree that was compiled; not to be changed."""
    root = make_tree(tmp_path_factory.mktemp("compiled"))
    done = compile_tree(root, HEADGATE_ENGINE="compiled")
    assert done.returncode == 0, done.stderr
    return root


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    return make_tree(tmp_path / "tree")


def test_what_was_compiled_runs_and_is_not_compiled_again(compiled: Path) -> None:
    assert python(compiled, SHOW).stdout == "compiled compiled\n"
    assert "up to date" in compile_tree(compiled).stderr


def test_an_exception_reaches_compiled_code_that_waits_also_where_warnings_are_errors(compiled: Path) -> None:
    done = start(compiled, "-W", "error", "-c", FAIL)
    assert done.stdout == "compiled KeyError('late')\n", done.stderr


def test_machine_code_of_another_checkout_on_the_path_is_never_run(compiled: Path, tmp_path: Path) -> None:
    other = shutil.copytree(compiled, tmp_path / "other")
    for library in other.rglob("*.so"):
        library.write_bytes(b"not a library")
    show = f"import sys, headgate.gateway\nsys.path.insert(0, {str(other)!r})\n{SHOW}"
    mapped = "print({line.split()[-1] for line in open('/proc/self/maps') if '__mypyc' in line})"
    done = python(compiled, f"{show}\n{mapped}")
    library = json.loads((compiled / "headgate" / "gateway" / "compiled.json").read_text())["library"]
    assert done.stdout == f"compiled compiled\n{{'{compiled / 'headgate' / 'gateway' / library}'}}\n", done.stderr


def test_a_source_distribution_of_a_compiled_tree_has_sources_only(compiled: Path, tmp_path: Path) -> None:
    root = shutil.copytree(compiled, tmp_path / "tree")
    with tarfile.open(build(root, "sdist")) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {"hatch_build.py", "mypyc.ini", "pyproject.toml", "headgate/gateway/proxy/probe.py"} <= names
    assert not [name for name in names if name.endswith((".so", ".c", ".o", "compiled.json"))]


def test_a_wheel_carries_the_engine_inside_the_package(compiled: Path, tmp_path: Path) -> None:
    root = shutil.copytree(compiled, tmp_path / "tree")
    site = tmp_path / "site"
    with zipfile.ZipFile(build(root, "wheel")) as archive:
        archive.extractall(site)
    assert {path.name for path in site.iterdir() if path.suffix != ".dist-info"} == {"headgate"}
    assert python(site, SHOW).stdout == "compiled compiled\n"


def test_a_compiler_that_fails_leaves_the_sources_and_one_line(tree: Path) -> None:
    done = compile_tree(tree, CC="false")
    assert done.returncode == 0
    assert done.stderr.startswith("warning: compiling failed")
    assert (done.stdout, done.stderr.count("\n")) == ("", 1)
    assert "make accelerate" in done.stderr
    assert python(tree, SHOW).stdout == "pure source\n"


def test_a_compiler_that_ends_midway_leaves_the_sources_and_the_next_run_a_new_library(
    compiled: Path, tmp_path: Path
) -> None:
    root = shutil.copytree(compiled, tmp_path / "tree")
    removed = root / "headgate" / "gateway" / "proxy" / f"removed{sysconfig.get_config_var('EXT_SUFFIX')}"
    removed.touch()
    (root / "build" / "tmp_of_one_that_was_killed").mkdir()
    (root / "headgate" / "gateway" / "proxy" / "probe.py").write_text(PROBE.replace("compiled", "changed"))
    compiler = root / "compiler"
    compiler.write_text('#!/bin/sh\necho >> calls\n[ "$(wc -l < calls)" -le 12 ] && exec cc "$@"\nkill -9 $$\n')
    compiler.chmod(0o755)
    done = compile_tree(root, CC=str(compiler))
    assert (done.returncode, done.stderr.count("\n")) == (0, 1)
    assert done.stderr.startswith("warning: compiling failed")
    assert python(root, SHOW).stdout == "pure source\n"
    assert compile_tree(root).stderr.startswith("compiled ")
    assert python(root, SHOW).stdout == "compiled changed\n"
    assert not removed.exists()
    assert not [*(root / "build").glob("tmp*")]
    (library,) = (root / "headgate" / "gateway").glob("_engine_*")
    assert library.name == json.loads((root / "headgate" / "gateway" / "compiled.json").read_text())["library"]


NEVER_ENDING = f"""#!{sys.executable}
import fcntl, time
lock = open("{{lock}}", "w")
fcntl.flock(lock, fcntl.LOCK_EX)
time.sleep({BOUND_S})
"""


@pytest.mark.parametrize(
    ("command", "signal_number"),
    [
        pytest.param(["{python}", "hatch_build.py"], signal.SIGKILL, id="the one that waits for it"),
        pytest.param(
            ["sh", "-c", "{python} hatch_build.py --beside & exec sleep 200"],
            signal.SIGTERM,
            id="what serves meanwhile",
        ),
    ],
)
async def test_compiling_ends_with_what_started_it(tree: Path, command: list[str], signal_number: int) -> None:
    compiler, works = tree / "compiler", tree / "works"
    compiler.write_text(NEVER_ENDING.format(lock=works))
    compiler.chmod(0o755)
    arguments = [part.format(python=sys.executable) for part in command]
    process = await asyncio.create_subprocess_exec(*arguments, cwd=tree, env=environment_of(tree, CC=str(compiler)))
    await until(lambda: is_locked(works), BOUND_S)
    assert is_locked(tree / "build" / "lock")
    process.send_signal(signal_number)
    await process.wait()
    await until(lambda: not is_locked(works) and not is_locked(tree / "build" / "lock"))


def test_where_the_engine_has_to_be_compiled_a_failure_is_an_error(tree: Path) -> None:
    done = compile_tree(tree, CC="no-such-compiler", HEADGATE_ENGINE="compiled")
    assert done.returncode == 1
    assert done.stderr == "there is no C compiler (no-such-compiler), and HEADGATE_ENGINE is compiled\n"


@pytest.mark.parametrize(
    ("settings", "said"),
    [({"CC": "no-such-compiler"}, "there is no C compiler (no-such-compiler)"), ({"HEADGATE_ENGINE": "pure"}, "pure")],
)
def test_without_a_compiler_or_a_wish_for_it_nothing_is_compiled(
    tree: Path, settings: dict[str, str], said: str
) -> None:
    done = compile_tree(tree, **settings)
    assert done.returncode == 0
    assert said in done.stderr
    assert not (tree / "build").exists()
