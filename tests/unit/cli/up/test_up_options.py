"""The flags of `up`: mistakes that are found before anything starts."""

import re
import socket
from pathlib import Path

import pytest

from headgate.cli.terminal.errors import UsageMistake
from headgate.cli.up.options import DemoBackend, UpOptions, parse_demo_backend
from headgate.cli.up.ports import choose_free, require_free
from headgate.cli.up.route_flags import RouteFlag, parse_route


@pytest.mark.parametrize("text", ["red", "red=", "=9101", "red=0", "red=65536", "red=x", "Red=1", "red=1=2", "red=²"])
def test_a_demo_backend_is_a_name_and_a_port(text: str) -> None:
    with pytest.raises(UsageMistake, match="expected NAME=PORT"):
        parse_demo_backend(text)


def test_a_demo_backend_is_read() -> None:
    assert parse_demo_backend("red=9101") == DemoBackend("red", 9101)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({}, "nothing to serve"),
        ({"manifests": (Path("no-such-folder"),)}, "no such file or folder"),
        ({"kubeconfig": Path("no-such-file")}, "no such file"),
        ({"manifests": (Path(),), "kubeconfig": Path("x")}, "exclude each other"),
        ({"manifests": (Path(),), "context": "staging"}, "give --kubeconfig"),
        ({"manifests": (Path(),), "cluster": "A b"}, "is not a name"),
        ({"manifests": (Path(),), "admin_port": 8080}, "--http-port and --admin-port both say 8080"),
        (
            {"manifests": (Path(),), "demo_backends": (DemoBackend("red", 1), DemoBackend("red", 2))},
            "the names must differ",
        ),
        ({"manifests": (Path(),), "demo_backends": (DemoBackend("nats", 1),)}, "'nats' is the name of a service"),
    ],
)
def test_flags_that_do_not_fit_each_other_are_refused(options: dict[str, object], told: str) -> None:
    with pytest.raises(UsageMistake, match=told):
        UpOptions(**options).check()  # type: ignore[arg-type]


def test_a_port_in_use_names_the_port_and_the_flag() -> None:
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        port = listener.getsockname()[1]
        with pytest.raises(UsageMistake, match=rf"port {port} \(--http-port\) is in use"):
            require_free("--http-port", port, "0.0.0.0")


def test_a_free_port_is_free() -> None:
    require_free("--http-port", choose_free(), "127.0.0.1")


CONFIG = """\
apiVersion: v1
kind: Config
current-context: %s
clusters: [{name: east, cluster: {server: https://127.0.0.1:1}}]
contexts:
  - {name: staging, context: {cluster: east, user: me}}
  - {name: old, context: {cluster: gone, user: me}}
users: [{name: me, user: {token: t}}]
"""


@pytest.mark.parametrize(
    ("text", "context", "told"),
    [
        (CONFIG % "staging", "prod", "has no context 'prod'; there are staging, old"),
        (CONFIG % "gone", "", "has no context 'gone', which it names as the current one; there are staging, old"),
        (CONFIG % "''", "", "names no current context: give --context NAME; there are staging, old"),
        (CONFIG % "staging", "old", "context 'old' names a cluster 'gone'; there is east"),
        ("contexts: [\n", "", "is not YAML in line 2"),
        ("- a\n", "", "holds no object"),
        ("kind: Config\n", "", "has no contexts"),
    ],
)
def test_a_kubeconfig_that_cannot_be_used_ends_with_what_there_is(
    tmp_path: Path, text: str, context: str, told: str
) -> None:
    (tmp_path / "config").write_text(text)
    with pytest.raises(UsageMistake, match=re.escape(told)):
        UpOptions(kubeconfig=tmp_path / "config", context=context).check()


def test_a_kubeconfig_with_the_context_is_taken(tmp_path: Path) -> None:
    (tmp_path / "config").write_text(CONFIG % "staging")
    UpOptions(kubeconfig=tmp_path / "config").check()
    UpOptions(kubeconfig=tmp_path / "config", context="staging").check()


@pytest.mark.parametrize(
    ("text", "route"),
    [
        ("app.localhost=127.0.0.1:3000", RouteFlag("app.localhost", "/", "127.0.0.1", 3000, False)),
        ("app.localhost/api=localhost:3000", RouteFlag("app.localhost", "/api", "127.0.0.1", 3000, False)),
        ("*=[::1]:3000", RouteFlag("", "/", "::1", 3000, False)),
        ("*.a.test=https://b.test:443", RouteFlag("*.a.test", "/", "b.test", 443, True)),
    ],
)
def test_a_route_is_read(text: str, route: RouteFlag) -> None:
    assert parse_route(text) == route


@pytest.mark.parametrize(
    "text", ["", "a", "a=", "a=b", "a=:1", "a=b:x", "a=b:99999", "A=b:1", "a=ftp://b:1", "a=b:1/c"]
)
def test_a_route_of_another_form_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(UsageMistake, match=r"such as app\.localhost=127\.0\.0\.1:3000"):
        parse_route(text)


def test_routes_and_a_kubeconfig_are_two_sources() -> None:
    with pytest.raises(UsageMistake, match="--route and --kubeconfig exclude each other"):
        UpOptions(routes=(parse_route("a=b:1"),), kubeconfig=Path("x")).check()
