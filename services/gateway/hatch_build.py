"""Compiles the modules that every request goes through with mypyc, in place, beside their sources.

Hatchling calls the hook for wheels; `make accelerate`, a part of `make up`, runs the file itself. Where there is no C
compiler everything goes on with the sources alone, which say the same and are slower.

`headgate/gateway/compiled.json` keeps what was compiled: the digest of each source, by its path in that folder. It
decides here whether there is anything to do, and in the running gateway whether the compiled modules are those of its
sources.
"""

import contextlib
import hashlib
import json
import os
import shutil
import sys
import sysconfig
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

ROOT = Path(__file__).parent
PACKAGE = ROOT / "headgate" / "gateway"
RECORD = PACKAGE / "compiled.json"
SUFFIX = sysconfig.get_config_var("EXT_SUFFIX")
GROUP = "headgate_gateway"
PLUGINS = (
    "interface/headers",
    "interface/messages",
    "interface/variables",
    "runtime/answer_run",
    "runtime/chain",
    "runtime/chosen_upstream",
    "runtime/consumer_chain",
    "runtime/hook_wait",
    "runtime/requests",
    "runtime/run",
    "runtime/upstream_calls",
)
"""What carries a request through its plugins. These themselves derive from an interpreted class, as anybody's do."""
OFTEN_USED = ("built_in/security/cors", "built_in/limits/limit_count", "built_in/traffic/request_id")
"""Plugins that are compiled all the same, as many routes have them."""


def sources() -> list[Path]:
    """Return what is compiled."""
    proxy = sorted((PACKAGE / "proxy").rglob("*.py"))
    plugins = [PACKAGE / "plugins" / f"{name}.py" for name in (*PLUGINS, *OFTEN_USED)]
    return [*proxy, *plugins, PACKAGE / "observability" / "access_log.py", PACKAGE / "balancing" / "round_robin.py"]


def products() -> list[Path]:
    """Return what compiling makes: one library with all the code, and a small module for each source that opens it."""
    return [ROOT / f"{GROUP}__mypyc{SUFFIX}", *(path.with_suffix(SUFFIX) for path in sources())]


def digests() -> dict[str, str]:
    """Return the digest of each source by its path in the package."""
    return {str(path.relative_to(PACKAGE)): hashlib.sha256(path.read_bytes()).hexdigest() for path in sources()}


def what_is_missing() -> str:
    """Say what of a C compiler is absent; empty if nothing is."""
    compiler = (os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc").split()[0]
    if shutil.which(compiler) is None:
        return f"no C compiler ({compiler})"
    if not (Path(sysconfig.get_path("include")) / "Python.h").exists():
        return "no Python.h"
    return ""


def is_fresh() -> bool:
    """Say whether what is there was made from the sources as they are."""
    if not RECORD.exists() or not all(path.exists() for path in products()):
        return False
    return bool(json.loads(RECORD.read_text()) == digests())


def compile_in_place() -> str:
    """Compile if need be; return what was done in one line. Raises what the compilers raise."""
    if is_fresh():
        return "the proxy's compiled modules are up to date"
    RECORD.unlink(missing_ok=True)
    missing = what_is_missing()
    if missing:
        return f"{missing}: the proxy is not compiled and runs as plain Python, which serves fewer requests per second"
    made_from = digests()
    with contextlib.chdir(ROOT):
        _run_compilers([str(path.relative_to(ROOT)) for path in sources()])
    RECORD.write_text(json.dumps(made_from, indent=1) + "\n")
    return f"compiled {len(made_from)} modules of the proxy"


def _run_compilers(paths: list[str]) -> None:
    from mypyc.build import mypycify
    from setuptools import Distribution
    from setuptools.command.build_ext import build_ext

    options = ["--config-file=", "--namespace-packages", "--explicit-package-bases", "--ignore-missing-imports"]
    extensions = mypycify([*options, *paths], opt_level="3", debug_level="0", group_name=GROUP)
    command = build_ext(Distribution({"name": GROUP, "ext_modules": extensions}))
    command.inplace = True
    command.build_temp = "build/temp"
    command.ensure_finalized()
    command.run()


class CompiledProxy(BuildHookInterface[Any]):
    """The hook by its name in `pyproject.toml`, `custom`."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile, and add what was made to a wheel. For an editable install `make accelerate` compiles."""
        if version == "editable":
            return
        self.app.display_info(compile_in_place())
        if RECORD.exists():
            build_data["pure_python"] = False
            build_data["infer_tag"] = True
            for path in (RECORD, *products()):
                build_data["force_include"][str(path)] = str(path.relative_to(ROOT))


if __name__ == "__main__":
    print(compile_in_place(), file=sys.stderr)
