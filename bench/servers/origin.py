"""The backend behind every proxy: one nginx worker that answers from memory and keeps connections open.

One port for each service, so that a proxy that pools connections by address gains nothing over one that pools by
service.
"""

import getpass
import os
from collections.abc import Sequence
from pathlib import Path

from bench.setup.processes import Process, wait_for_port
from bench.setup.workload import FORWARDED_HEADERS, HEADERS_PATH, LARGE_BYTES, LARGE_PATH, SMALL_BYTES

_CONFIG = """
daemon off;
{user}
worker_processes 1;
pid {folder}/origin.pid;
error_log {folder}/origin-error.log warn;
events {{ worker_connections 16384; }}
http {{
    access_log off;
    default_type text/plain;
    keepalive_requests 1000000000;
    keepalive_timeout 1h;
    client_body_temp_path {folder}/origin-temp;
    proxy_temp_path {folder}/origin-temp;
    fastcgi_temp_path {folder}/origin-temp;
    uwsgi_temp_path {folder}/origin-temp;
    scgi_temp_path {folder}/origin-temp;
    open_file_cache max=16 inactive=1h;
    sendfile on;
    {server}
    {named_servers}
}}
"""

_SERVER = """server {{
        {listens}
        location / {{ return 200 "{body}"; }}
        location = {large_path} {{ alias {folder}/large.txt; }}
        location = {headers_path} {{ return 200 "{headers}"; }}
    }}"""


def user_directive() -> str:
    """Directive that keeps nginx's worker readable to the folder when started by root; others may not say it."""
    return f"user {getpass.getuser()};" if os.geteuid() == 0 else ""


def origin_config(folder: Path, ports: Sequence[int], named_ports: Sequence[int], named_host: str = "127.0.0.1") -> str:
    """Configuration with the bench's answers on `ports`; on `named_ports` each answers its own port number."""
    headers = ("host", *FORWARDED_HEADERS)
    server = _SERVER.format(
        folder=folder,
        listens=" ".join(f"listen 127.0.0.1:{port} backlog=4096;" for port in ports),
        body="x" * SMALL_BYTES,
        large_path=LARGE_PATH,
        headers_path=HEADERS_PATH,
        headers="".join(f"{name}: $http_{name.replace('-', '_')}\\n" for name in headers),
    )
    return _CONFIG.format(
        user=user_directive(),
        folder=folder,
        server=server if ports else "",  # without a port of its own it would listen on 80
        named_servers="\n    ".join(
            f'server {{ listen {named_host}:{port}; location / {{ return 200 "{port}"; }} }}' for port in named_ports
        ),
    )


def start_origin(
    folder: Path,
    ports: Sequence[int],
    *,
    named_ports: Sequence[int] = (),
    named_host: str = "127.0.0.1",
    core: int | None = None,
) -> Process:
    """Start the origin and wait until it answers on all its ports; `named_host` is where the named ones listen."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "large.txt").write_text("x" * LARGE_BYTES)
    config = folder / "origin.conf"
    config.write_text(origin_config(folder, ports, named_ports, named_host))
    error_log = str(folder / "origin-error.log")
    process = Process("origin", ["nginx", "-p", str(folder), "-e", error_log, "-c", str(config)], folder, core=core)
    for port in (*ports, *named_ports):
        wait_for_port(port, process)
    return process
