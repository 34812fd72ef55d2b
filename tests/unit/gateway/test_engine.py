"""Whether a process runs compiled modules or sources; each case is a process of its own, on a package of one module."""

import hashlib
import json
import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

import headgate.gateway

SOURCE = b"origin = 'source'\n"
LIBRARY = f"_engine_0123456789ab__mypyc{sysconfig.get_config_var('EXT_SUFFIX')}"
SHOW = "from headgate.gateway import ENGINE; from headgate.gateway.parts import probe; print(ENGINE, probe.origin)"


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A gateway package of one module, which was compiled to something that no Python would load."""
    package = tmp_path / "headgate" / "gateway"
    (package / "parts").mkdir(parents=True)
    shutil.copy(headgate.gateway.__file__, package)
    (package / "parts" / "probe.py").write_bytes(SOURCE)
    (package / "parts" / f"probe{sysconfig.get_config_var('EXT_SUFFIX')}").write_bytes(b"not a library")
    (package / LIBRARY).write_bytes(b"not a library")
    made_from = {"parts/probe.py": hashlib.sha256(SOURCE).hexdigest()}
    (package / "compiled.json").write_text(json.dumps({"library": LIBRARY, "sources": made_from}))
    return package


def run(package: Path, engine: str | None) -> tuple[str, str]:
    """Import the package in a new process; give its output and the last line of its complaints."""
    environment = {name: value for name, value in os.environ.items() if name != "HEADGATE_ENGINE"}
    environment["PYTHONPATH"] = str(package.parent.parent)
    if engine is not None:
        environment["HEADGATE_ENGINE"] = engine
    done = subprocess.run([sys.executable, "-c", SHOW], env=environment, capture_output=True, text=True, check=False)
    return done.stdout.strip(), done.stderr.strip().rpartition("\n")[2]


@pytest.mark.parametrize("engine", [None, "", "auto"])
def test_a_library_that_cannot_be_loaded_leaves_the_sources(package: Path, engine: str | None) -> None:
    assert run(package, engine) == ("pure source", "")


def test_asking_for_a_library_that_cannot_be_loaded_is_an_error(package: Path) -> None:
    output, complaint = run(package, "compiled")
    assert output == ""
    assert complaint.startswith("ImportError: HEADGATE_ENGINE is compiled, but the compiled modules cannot be loaded")


def test_pure_takes_sources_beside_compiled_modules(package: Path) -> None:
    assert run(package, "pure") == ("pure source", "")


@pytest.mark.parametrize("engine", [None, "auto"])
def test_edited_source_is_never_hidden_by_what_was_compiled_before(package: Path, engine: str | None) -> None:
    (package / "parts" / "probe.py").write_text("origin = 'edited'\n")
    assert run(package, engine) == ("pure edited", "")


def test_without_compiled_modules_the_sources_run(package: Path) -> None:
    (package / "compiled.json").unlink()
    assert run(package, None) == ("pure source", "")


def test_compiled_modules_without_their_library_are_not_taken(package: Path) -> None:
    (package / LIBRARY).unlink()
    assert run(package, None) == ("pure source", "")


@pytest.mark.parametrize("record", ['{"parts/probe.py": "00"}', '{"library": 1, "sources": []}', "[]", '{"libr'])
def test_modules_whose_record_cannot_be_read_are_not_taken(package: Path, record: str) -> None:
    (package / "compiled.json").write_text(record)
    assert run(package, None) == ("pure source", "")


def test_modules_compiled_for_another_python_are_not_taken(package: Path) -> None:
    compiled = next((package / "parts").glob("*.so"))
    compiled.rename(compiled.with_name("probe.cpython-27-x86_64-linux-gnu.so"))
    assert run(package, None) == ("pure source", "")


def test_asking_for_compiled_modules_that_are_absent_is_an_error(package: Path) -> None:
    (package / "compiled.json").unlink()
    output, complaint = run(package, "compiled")
    assert output == ""
    assert "the compiled modules are absent" in complaint


def test_asking_for_compiled_modules_that_are_stale_is_an_error(package: Path) -> None:
    (package / "parts" / "probe.py").write_text("origin = 'edited'\n")
    assert "the compiled modules are older than parts/probe.py" in run(package, "compiled")[1]


def test_unknown_engine_is_refused_with_those_that_exist(package: Path) -> None:
    assert "'fast', which is none of auto, pure and compiled" in run(package, "fast")[1]
