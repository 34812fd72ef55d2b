"""The plugins that come with the gateway."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from headgate.gateway.plugins.bandwidth import Bandwidth
from headgate.gateway.plugins.basic_auth import BasicAuth
from headgate.gateway.plugins.brotli import Brotli
from headgate.gateway.plugins.client_control import ClientControl
from headgate.gateway.plugins.cors import Cors
from headgate.gateway.plugins.error_page import ErrorPage
from headgate.gateway.plugins.fault_injection import FaultInjection
from headgate.gateway.plugins.forward_auth import ForwardAuth
from headgate.gateway.plugins.gzip import Gzip
from headgate.gateway.plugins.interface import Plugin
from headgate.gateway.plugins.ip_restriction import IpRestriction
from headgate.gateway.plugins.limit_conn import LimitConn
from headgate.gateway.plugins.limit_count import LimitCount
from headgate.gateway.plugins.limit_req import LimitReq
from headgate.gateway.plugins.proxy_mirror import ProxyMirror
from headgate.gateway.plugins.proxy_rewrite import ProxyRewrite
from headgate.gateway.plugins.redirect import Redirect
from headgate.gateway.plugins.request_id import RequestId
from headgate.gateway.plugins.response_rewrite import ResponseRewrite
from headgate.gateway.plugins.zstd import Zstd

_ALL: tuple[type[Plugin[Any]], ...] = (
    Bandwidth,
    BasicAuth,
    Brotli,
    ClientControl,
    Cors,
    ErrorPage,
    FaultInjection,
    ForwardAuth,
    Gzip,
    IpRestriction,
    LimitConn,
    LimitCount,
    LimitReq,
    ProxyMirror,
    ProxyRewrite,
    Redirect,
    RequestId,
    ResponseRewrite,
    Zstd,
)

BUILT_IN: Mapping[str, type[Plugin[Any]]] = MappingProxyType({kind.name: kind for kind in _ALL})
"""By name."""
