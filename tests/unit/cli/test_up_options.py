"""The flags of `up`: mistakes that are found before anything starts."""

import socket
from pathlib import Path

import pytest

from headgate.cli.errors import UsageMistake
from headgate.cli.up.options import DemoBackend, UpOptions, parse_demo_backend
from headgate.cli.up.ports import choose_free, require_free


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
        ({"manifests": (Path("no-such-folder"),)}, "no such folder"),
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
