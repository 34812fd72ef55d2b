"""Plugins that Apache APISIX has and gateways do not, and what does instead: for whoever moves here with one."""

from collections.abc import Mapping
from typing import Final

_LOGS = (
    "logs are sent by http-logger, kafka-logger, loki-logger, elasticsearch-logger, clickhouse-logger, "
    "splunk-hec-logging, google-cloud-logging, skywalking-logger, loggly, tcp-logger, udp-logger and syslog"
)
_TRACES = "traces are sent by opentelemetry"
_OF_ONES_OWN = "what says the same, and functions of your own in Python: docs/lua.md"

ELSEWHERE: Final[Mapping[str, str]] = {
    **dict.fromkeys(("serverless-pre-function", "serverless-post-function"), f"Lua is not run; {_OF_ONES_OWN}"),
    "exit-transformer": (
        "Lua is not run; error-page puts other bodies, and response-rewrite other statuses and bodies, in the place of "
        f"errors; {_OF_ONES_OWN}"
    ),
    **dict.fromkeys(
        ("ext-plugin-pre-req", "ext-plugin-post-req", "ext-plugin-post-resp"),
        f"plugin runners are not called; {_OF_ONES_OWN}",
    ),
    **dict.fromkeys(("skywalking", "zipkin"), _TRACES),
    **dict.fromkeys(("rocketmq-logger", "sls-logger", "tencent-cloud-cls"), _LOGS),
    "batch-requests": "public-api shows its page, /apisix/batch-requests, without it",
    **dict.fromkeys(("node-status", "server-info"), "`headgate status` says how the gateways are"),
}
"""By name."""
