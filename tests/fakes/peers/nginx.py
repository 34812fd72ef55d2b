"""Debian's nginx on loopback, with a configuration written for a test: what behaviour is compared with."""

import asyncio
import contextlib
import shutil
import subprocess
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest

from fakes.gateway.ports import free_port

PROGRAM = shutil.which("nginx", path="/usr/sbin:/usr/bin:/usr/local/sbin")
HEADERS_MORE = Path("/usr/lib/nginx/modules/ngx_http_headers_more_filter_module.so")
"""Debian's package libnginx-mod-http-headers-more-filter."""
needs_nginx = pytest.mark.skipif(PROGRAM is None, reason="nginx is not installed")
needs_headers_more = pytest.mark.skipif(
    PROGRAM is None or not HEADERS_MORE.exists(), reason="nginx with the module headers-more is not installed"
)
_MAIN = """
{modules}
daemon off; master_process off; worker_processes 1; pid {folder}/nginx.pid; error_log {folder}/error.log info;
events {{ worker_connections 64; }}
http {{
    access_log off; default_type text/plain;
    client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy; fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi; scgi_temp_path {folder}/scgi;
    {http}
    server {{ listen 127.0.0.1:{port}; server_name _; {server} }}
}}
"""


@contextlib.asynccontextmanager
async def nginx(folder: Path, server: str, http: str = "", modules: Sequence[Path] = ()) -> AsyncIterator[int]:
    """Run nginx in a folder, with the directives of one server and of the `http` block; gives its port.

    In the latter `PORT` stands for the port.
    """
    assert PROGRAM is not None
    port = free_port()
    loaded = "".join(f"load_module {module};" for module in modules)
    config = folder / "nginx.conf"
    config.write_text(
        _MAIN.format(folder=folder, http=http.replace("PORT", str(port)), port=port, server=server, modules=loaded)
    )
    command = [PROGRAM, "-p", str(folder), "-c", str(config), "-e", str(folder / "error.log")]
    process = subprocess.Popen(command, stderr=subprocess.PIPE)  # noqa: ASYNC220 - uvloop's own hangs here
    try:
        await _answers(process, port)
        yield port
    finally:
        process.terminate()
        process.communicate(timeout=20)


async def _answers(process: "subprocess.Popen[bytes]", port: int) -> None:
    for _ in range(400):
        if process.poll() is not None:
            raise AssertionError(f"nginx ended: {process.communicate()[1].decode()}")
        with contextlib.suppress(OSError):
            _, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.close()
            return
        await asyncio.sleep(0.025)
    raise AssertionError("nginx does not listen")
