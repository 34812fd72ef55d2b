"""Compiles the modules that every request goes through with mypyc, in place, beside their sources.

Hatchling calls the hook for wheels; `make accelerate` runs the file itself, and `make up` runs it with `--beside` while
the sources serve. Compiling is a process of its own, so that whatever ends it (a failing compiler, a full disk, the
kernel for want of memory) leaves an installation that runs on the sources, and one line that says so. It ends with the
process that started it, however that one ends. `HEADGATE_ENGINE` decides here, too: with `compiled` such a failure is
an error, with `pure` nothing is compiled.

`headgate/gateway/compiled.json` keeps what was compiled: the library with the machine code, and the digest of each
source by its path in that folder. It decides here whether there is anything to do, and in the running gateway whether
the compiled modules are those of its sources.
"""

import contextlib
import fcntl
import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

ROOT = Path(__file__).resolve().parent
PACKAGE = ROOT / "headgate" / "gateway"
RECORD = PACKAGE / "compiled.json"
BUILD = ROOT / "build"
LOG = BUILD / "compile.log"
SUFFIX = sysconfig.get_config_var("EXT_SUFFIX")
JOBS = min(4, len(os.sched_getaffinity(0)))
"""Compilers at once: each takes up to 200 MB, beside the 400 MB of mypyc."""
LOOK_S = 0.2
"""Between two looks at the processes that a process waits for or depends on."""
PLUGINS = (
    "interface/headers",
    "interface/messages",
    "interface/sources",
    "interface/variables",
    "kit/key_reader",
    "kit/patterns",
    "runtime/answer_run",
    "runtime/backend_stage",
    "runtime/chain",
    "runtime/chosen_upstream",
    "runtime/consumer_chain",
    "runtime/hook_wait",
    "runtime/requests",
    "runtime/run",
    "runtime/streamed_answer",
    "runtime/subrequests",
    "runtime/upstream_calls",
)
"""What carries a request through its plugins. These themselves derive from an interpreted class, as anybody's do."""
OFTEN_USED = (
    "built_in/limits/limit_count",
    "built_in/limits/limit_req",
    "built_in/limits/windows",
    "built_in/security/cors",
    "built_in/security/hsts",
    "built_in/traffic/proxy_rewrite",
    "built_in/traffic/request_id",
)
"""Plugins that are compiled all the same, as many routes have them."""
OTHERS = (
    "balancing/maglev",
    "balancing/round_robin",
    "model/persistent_map",
    "observability/access_log",
    "table/path_index",
    "table/routers",
)
"""What else every request goes through, and what is heavy work."""
THROWS = "PyObject_CallFunctionObjArgs(_m, type, value, traceback, NULL)"
"""How mypyc 2.4 passes an exception on to what a coroutine awaits. Python 3.12 and newer warn of the three arguments
(https://github.com/mypyc/mypyc/issues/1214), and where warnings are errors the warning takes the exception's place."""
THROWS_ONE = "PyObject_CallOneArg(_m, value)"
"""The same as generators of all versions take it; the exception has its type and its traceback."""


def sources() -> list[Path]:
    """Return what is compiled; not what makes folders packages, as mypyc would take the library's folder for theirs."""
    proxy = sorted(path for path in (PACKAGE / "proxy").rglob("*.py") if path.name != "__init__.py")
    plugins = [PACKAGE / "plugins" / f"{name}.py" for name in (*PLUGINS, *OFTEN_USED)]
    others = [PACKAGE / f"{name}.py" for name in OTHERS]
    return [*proxy, *plugins, *others]


def digests() -> dict[str, str]:
    """Return the digest of each source by its path in the package."""
    return {str(path.relative_to(PACKAGE)): hashlib.sha256(path.read_bytes()).hexdigest() for path in sources()}


def group(made_from: dict[str, str]) -> str:
    """Return the dotted name that mypyc derives the library's from.

    The library is a module of the package and named for its sources, so that no other checkout's code is ever found in
    its place.
    """
    return f"headgate.gateway._engine_{hashlib.sha256(json.dumps(made_from).encode()).hexdigest()[:12]}"


def products(library: str) -> list[Path]:
    """Return what compiling makes: one library with all the code, and a small module for each source that opens it."""
    return [PACKAGE / library, *(path.with_suffix(SUFFIX) for path in sources())]


def record() -> dict[str, Any]:
    """Return what was compiled; empty if nothing was."""
    return dict(json.loads(RECORD.read_text())) if RECORD.exists() else {}


def is_fresh() -> bool:
    """Say whether what is there was made from the sources as they are."""
    there = record()
    return there.get("sources") == digests() and all(path.exists() for path in products(there["library"]))


def what_is_missing() -> str:
    """Say what of a C compiler is absent; empty if nothing is."""
    compiler = (os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc").split()[0]
    if shutil.which(compiler) is None:
        return f"there is no C compiler ({compiler})"
    if not (Path(sysconfig.get_path("include")) / "Python.h").exists():
        return "Python.h is missing (package python3-dev)"
    return ""


def compile_in_place(*, beside: bool = False) -> str:
    """Compile if need be, and return what was done in one line.

    Args:
        beside: at the lowest priority.

    Raises:
        RuntimeError: nothing could be compiled, and `HEADGATE_ENGINE` is `compiled`.
    """
    engine = os.environ.get("HEADGATE_ENGINE")
    if engine == "pure":
        return "the proxy is not compiled, as HEADGATE_ENGINE is pure"
    began = time.monotonic()
    if is_fresh():
        RECORD.touch()
        return "the proxy's compiled modules are up to date"
    RECORD.unlink(missing_ok=True)
    fault = what_is_missing() or _run_compilers(beside)
    if not fault:
        return f"compiled {len(record()['sources'])} modules of the proxy in {time.monotonic() - began:.0f} s"
    if engine == "compiled":
        raise RuntimeError(f"{fault}, and HEADGATE_ENGINE is compiled")
    return (
        f"warning: {fault}: the proxy runs as plain Python, which serves fewer requests per second; "
        "mend that and run `make accelerate`, or install again"
    )


def _run_compilers(beside: bool) -> str:
    """Run this file as a process that compiles; say why it failed, or nothing."""
    parent = os.getppid()
    BUILD.mkdir(exist_ok=True)
    with LOG.open("w") as log:
        command = [sys.executable, __file__, "--compile", str(os.getpid())]
        process = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)  # noqa: S603 - of ours
        with _ended(process):
            if beside:
                os.setpriority(os.PRIO_PGRP, process.pid, 19)
            while process.poll() is None and os.getppid() == parent:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(LOOK_S)
    if process.returncode == 0 and is_fresh():
        return ""
    if os.getppid() != parent:
        return "compiling ended with the process that started it"
    return f"compiling failed ({LOG} says how)"


@contextlib.contextmanager
def _ended(process: subprocess.Popen[bytes]) -> Iterator[None]:
    """End a process with all that it started."""
    try:
        yield
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _compile_under(parent: int) -> int:
    """Compile as long as the parent lives, and return the exit code.

    A child compiles: mypyc does not let another thread of its process run for seconds.
    """
    child = os.fork()
    if not child:
        _compile()
        sys.stdout.flush()
        os._exit(0)  # Python would take the trees of mypy apart first, for seconds.
    while os.getppid() == parent:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status)
        time.sleep(LOOK_S)
    os.killpg(0, signal.SIGKILL)
    return 1


def _compile() -> None:
    """Compile, unless another process did so meanwhile. Raises what the compilers raise."""
    with (BUILD / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if is_fresh():
            return
        for left in BUILD.glob("tmp*"):  # by a process that was killed
            shutil.rmtree(left)
        made_from = digests()
        with contextlib.chdir(ROOT), tempfile.TemporaryDirectory(dir="build") as folder:
            _call_mypyc(group(made_from), folder)
        library = f"{group(made_from).rpartition('.')[2]}__mypyc{SUFFIX}"
        for old in {*PACKAGE.rglob(f"*{SUFFIX}")}.difference(products(library)):
            old.unlink()
        new = RECORD.with_suffix(".new")
        new.write_text(json.dumps({"library": library, "sources": made_from}, indent=1) + "\n")
        new.replace(RECORD)


def _call_mypyc(name: str, folder: str) -> None:
    from mypyc.build import mypycify
    from setuptools import Distribution
    from setuptools.command.build_ext import build_ext

    class InParallel(build_ext):  # type: ignore[misc]
        """Compiles several C files at once, whichever module they belong to."""

        def build_extensions(self) -> None:
            one_by_one = self.compiler.compile
            # Headers of a library inside a package lie in its folder; hidden functions are called without a table.
            self.compiler.add_include_dir(str(Path(folder, *name.split(".")[:-1])))
            self.compiler.compiler_so.append("-fvisibility=hidden")

            def compile_all(files: list[str], *arguments: Any, **options: Any) -> list[str]:
                made = pool.map(lambda file: one_by_one([file], *arguments, **options), files)
                return [path for paths in made for path in paths]

            with ThreadPoolExecutor(JOBS) as pool:
                self.compiler.compile = compile_all
                super().build_extensions()

    paths = [str(path.relative_to(ROOT)) for path in sources()]
    extensions = mypycify(
        ["--config-file=mypyc.ini", *paths],
        opt_level="3",
        debug_level="0",
        group_name=name,
        multi_file=True,
        target_dir=folder,
    )
    runtime = Path(folder, "misc_ops.c")
    runtime.write_text(runtime.read_text().replace(THROWS, THROWS_ONE))
    command = InParallel(Distribution({"name": "headgate-engine", "ext_modules": extensions}))
    command.inplace = True
    command.parallel = JOBS
    command.build_temp = command.build_lib = folder
    command.ensure_finalized()
    command.run()


class CompiledProxy(BuildHookInterface[Any]):
    """The hook by its name in `pyproject.toml`, `custom`."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile, and add what was made to a wheel. For an editable install `make accelerate` compiles."""
        if self.target_name != "wheel" or version == "editable":
            return
        done = compile_in_place()
        (self.app.display_warning if done.startswith("warning: ") else self.app.display_info)(done)
        if RECORD.exists():
            build_data["pure_python"] = False
            build_data["infer_tag"] = True
            for path in (RECORD, *products(record()["library"])):
                build_data["force_include"][str(path)] = str(path.relative_to(ROOT))


def main(arguments: list[str]) -> int:
    """Compile as the arguments say; return the exit code."""
    beside = "--beside" in arguments
    if arguments[:1] == ["--compile"]:
        return _compile_under(int(arguments[1]))
    if beside and is_fresh():
        return 0
    if beside:
        print("the sources serve while the proxy is compiled beside them, for the next start", file=sys.stderr)
    try:
        print(compile_in_place(beside=beside), file=sys.stderr)
    except RuntimeError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
