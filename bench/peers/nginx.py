"""nginx as ingress-nginx configures it for one worker: a server for each host, an upstream with idle connections for
each service. Its access log is buffered, the fastest way that it has.
"""

import re
import subprocess
from pathlib import Path

from bench.peers import IDLE_CONNECTIONS, Running
from bench.servers.origin import user_directive
from bench.setup.processes import Process, free_ports, need_program, wait_for_port
from bench.setup.workload import TLS_SERVER_NAME, Extra, Workload

_CONFIG = """
daemon off;
{user}
worker_processes 1;
pid {folder}/nginx.pid;
error_log {folder}/nginx-error.log warn;
worker_rlimit_nofile 65536;
events {{ worker_connections 16384; }}
http {{
    log_format routed '$remote_addr - $remote_user [$time_local] "$request" $status $body_bytes_sent "$http_referer" '
                      '"$http_user_agent" $request_time $host $upstream_addr $upstream_response_time $request_id';
    access_log {folder}/nginx-access.log routed buffer=64k flush=1s;
    server_names_hash_max_size 4096;
    server_names_hash_bucket_size 128;
    keepalive_requests 1000000000;
    keepalive_timeout 1h;
    client_body_temp_path {folder}/nginx-temp;
    proxy_temp_path {folder}/nginx-temp;
    fastcgi_temp_path {folder}/nginx-temp;
    uwsgi_temp_path {folder}/nginx-temp;
    scgi_temp_path {folder}/nginx-temp;
    proxy_http_version 1.1;
    proxy_set_header Connection "";
    proxy_set_header Host $http_host;
    proxy_set_header X-Real-IP $remote_addr;
    proxy_set_header X-Forwarded-For $remote_addr;
    proxy_set_header X-Forwarded-Proto $scheme;
    proxy_set_header X-Forwarded-Host $http_host;
    proxy_set_header X-Forwarded-Port $server_port;
    proxy_set_header X-Request-ID $request_id;
    ssl_certificate {certificate};
    ssl_certificate_key {key};
    ssl_protocols TLSv1.2 TLSv1.3;
    {upstreams}
    server {{ {listens_default} server_name {tls_name}; return 404; }}
    {servers}
    {extras}
}}
"""


class Nginx:
    """The Debian package."""

    name = "nginx"

    def missing(self) -> str | None:
        """None if it can be started, else what to install."""
        return need_program("nginx", "nginx-light")

    def start(self, workload: Workload, folder: Path, *, core: int, side_core: int) -> Running:
        """Start the one worker, and the master that only waits, on `core`."""
        http_port, https_port, h2c_port = free_ports(3)
        folder.mkdir(parents=True, exist_ok=True)
        config = folder / "nginx.conf"
        config.write_text(_config(workload, folder, http_port, https_port, h2c_port))
        error_log = str(folder / "nginx-error.log")
        argv = ["nginx", "-p", str(folder), "-e", error_log, "-c", str(config)]
        process = Process("nginx", argv, folder, core=core)
        wait_for_port(http_port, process)
        return Running(self.name, _version(), http_port, https_port, (process,), h2c_port)


_EXTRA = """upstream {name} {{ server 127.0.0.1:{port}; keepalive {idle}; keepalive_requests 1000000000; }}
    server {{ {listens} server_name {host}; location / {{ {passing} }} }}"""
_STREAMING = """client_max_body_size 0; proxy_request_buffering off; proxy_max_temp_file_size 0;
        proxy_buffer_size 64k; proxy_buffers 8 64k; proxy_busy_buffers_size 128k; client_body_buffer_size 64k;
        proxy_pass http://{name};"""
"""Bodies pass as they come, in large pieces, and never through a file: the fastest way that it has."""


def _extra(extra: Extra, listens: str) -> str:
    passing = f"client_max_body_size 0; grpc_pass grpc://{extra.name};" if extra.speaks_http2 else _STREAMING
    return _EXTRA.format(
        name=extra.name,
        port=extra.port,
        idle=IDLE_CONNECTIONS,
        host=extra.host,
        listens=listens,
        passing=passing.format(name=extra.name),
    )


def _config(workload: Workload, folder: Path, http_port: int, https_port: int, h2c_port: int) -> str:
    listens = (
        f"listen 127.0.0.1:{http_port}{{0}}; listen 127.0.0.1:{https_port} ssl http2{{0}}; "
        f"listen 127.0.0.1:{h2c_port} http2{{0}};"
    )
    return _CONFIG.format(
        user=user_directive(),
        folder=folder,
        certificate=workload.certificate,
        key=workload.key,
        tls_name=TLS_SERVER_NAME,
        listens_default=listens.format(" default_server backlog=4096"),
        upstreams="\n    ".join(
            f"upstream service-{index} {{ server 127.0.0.1:{port}; keepalive {IDLE_CONNECTIONS}; "
            "keepalive_requests 1000000000; keepalive_timeout 1h; }"
            for index, port in enumerate(workload.origin_ports)
        ),
        servers="\n    ".join(
            f"server {{ {listens.format('')} server_name {host}; "
            f"location / {{ proxy_pass http://service-{workload.service_of(index)}; }} }}"
            for index, host in enumerate(workload.hosts)
        ),
        extras="\n    ".join(_extra(extra, listens.format("")) for extra in workload.extras),
    )


def _version() -> str:
    said = subprocess.run(["nginx", "-v"], capture_output=True, text=True, check=True).stderr
    found = re.search(r"nginx/(\S+)", said)
    return found.group(1) if found else said.strip()
