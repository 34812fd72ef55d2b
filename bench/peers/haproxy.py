"""HAProxy with one thread. Its log goes line by line to its standard output, a file: it has no buffered way."""

import re
import subprocess
from pathlib import Path

from bench.peers import IDLE_CONNECTIONS, Running
from bench.setup.processes import Process, free_ports, need_program, wait_for_port
from bench.setup.workload import Workload

CONNECTIONS = 8192
"""At once. It wants two descriptors for each and does not start without."""
_CONFIG = """
global
    nbthread 1
    maxconn {connections}
    log stdout format raw local0
    tune.ssl.default-dh-param 2048

defaults
    mode http
    log global
    option httplog
    option http-keep-alive
    http-reuse always
    timeout connect 5s
    timeout client 1h
    timeout server 1h
    timeout http-keep-alive 1h
    unique-id-format %[uuid()]

frontend entrance
    bind 127.0.0.1:{http_port} backlog 4096
    bind 127.0.0.1:{https_port} ssl crt {pem} ssl-min-ver TLSv1.2 alpn h2,http/1.1 backlog 4096
    http-request set-header X-Real-IP %[src]
    http-request set-header X-Forwarded-For %[src]
    http-request set-header X-Forwarded-Proto https if {{ ssl_fc }}
    http-request set-header X-Forwarded-Proto http if !{{ ssl_fc }}
    http-request set-header X-Forwarded-Host %[req.hdr(Host)]
    http-request set-header X-Forwarded-Port %[dst_port]
    http-request set-header X-Request-ID %[unique-id]
    use_backend %[req.hdr(host),field(1,:),lower,map_str({map})]
    default_backend nowhere

backend nowhere
    http-request return status 404

{backends}
"""


class HAProxy:
    """The Debian package."""

    name = "HAProxy"

    def missing(self) -> str | None:
        """None if it can be started, else what to install."""
        return need_program("haproxy", "haproxy")

    def start(self, workload: Workload, folder: Path, *, core: int, side_core: int) -> Running:
        """Start the one process on `core`."""
        http_port, https_port = free_ports(2)
        folder.mkdir(parents=True, exist_ok=True)
        config = folder / "haproxy.cfg"
        config.write_text(_config(workload, folder, http_port, https_port))
        access_log = folder / "haproxy-access.log"
        process = Process("haproxy", ["haproxy", "-db", "-f", str(config)], folder, core=core, stdout=access_log)
        wait_for_port(http_port, process)
        return Running(self.name, _version(), http_port, https_port, (process,), http_port)


def _config(workload: Workload, folder: Path, http_port: int, https_port: int) -> str:
    pem = folder / "haproxy.pem"
    pem.write_bytes(workload.certificate.read_bytes() + workload.key.read_bytes())
    hosts = folder / "haproxy.map"
    lines = (f"{host} service-{workload.service_of(index)}\n" for index, host in enumerate(workload.hosts))
    extras = (f"{extra.host} {extra.name}\n" for extra in workload.extras)
    hosts.write_text("".join((*lines, *extras)))
    pool = f"pool-max-conn {IDLE_CONNECTIONS} pool-purge-delay 1h"
    backends = (
        f"backend service-{index}\n    server one 127.0.0.1:{port} {pool}\n"
        for index, port in enumerate(workload.origin_ports)
    )
    extra_backends = (
        f"backend {extra.name}\n    server one 127.0.0.1:{extra.port} {pool}{' proto h2' * extra.speaks_http2}\n"
        for extra in workload.extras
    )
    return _CONFIG.format(
        connections=CONNECTIONS,
        http_port=http_port,
        https_port=https_port,
        pem=pem,
        map=hosts,
        backends="\n".join((*backends, *extra_backends)),
    )


def _version() -> str:
    said = subprocess.run(["haproxy", "-v"], capture_output=True, text=True, check=True).stdout
    found = re.search(r"version (\S+)", said)
    return found.group(1) if found else said.splitlines()[0]
