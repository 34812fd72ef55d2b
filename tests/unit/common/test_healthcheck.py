"""The health check of the images."""

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from fakes.ports import free_port
from headgate.common.healthcheck import main


class Site(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200 if self.path == "/healthz" else 503)
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        """Be quiet."""


@pytest.fixture
def site(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with HTTPServer(("127.0.0.1", 0), Site) as server:
        monkeypatch.setenv("HEADGATE_ADMIN_PORT", str(server.server_port))
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield
        server.shutdown()
        thread.join()


@pytest.mark.usefixtures("site")
def test_an_answer_decides(capsys: pytest.CaptureFixture[str]) -> None:
    assert main() == 0
    assert main("/readyz") == 1
    assert "/readyz: HTTP Error 503" in capsys.readouterr().err


def test_a_site_that_is_not_there_is_named(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    port = free_port()
    monkeypatch.setenv("HEADGATE_ADMIN_PORT", str(port))
    assert main() == 1
    assert f"http://127.0.0.1:{port}/healthz" in capsys.readouterr().err
