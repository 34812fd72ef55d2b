"""The plugins that come with the gateway."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from headgate.gateway.plugins.api_breaker import ApiBreaker
from headgate.gateway.plugins.authz_casbin import AuthzCasbin
from headgate.gateway.plugins.bandwidth import Bandwidth
from headgate.gateway.plugins.basic_auth import BasicAuth
from headgate.gateway.plugins.body_transformer import BodyTransformer
from headgate.gateway.plugins.brotli import Brotli
from headgate.gateway.plugins.client_control import ClientControl
from headgate.gateway.plugins.consumer_restriction import ConsumerRestriction
from headgate.gateway.plugins.cors import Cors
from headgate.gateway.plugins.csrf import Csrf
from headgate.gateway.plugins.degraphql import Degraphql
from headgate.gateway.plugins.echo import Echo
from headgate.gateway.plugins.error_page import ErrorPage
from headgate.gateway.plugins.fault_injection import FaultInjection
from headgate.gateway.plugins.file_logger import FileLogger
from headgate.gateway.plugins.forward_auth import ForwardAuth
from headgate.gateway.plugins.grpc_web import GrpcWeb
from headgate.gateway.plugins.gzip import Gzip
from headgate.gateway.plugins.hmac_auth import HmacAuth
from headgate.gateway.plugins.http_logger import HttpLogger
from headgate.gateway.plugins.interface import Plugin
from headgate.gateway.plugins.ip_restriction import IpRestriction
from headgate.gateway.plugins.jwe_decrypt import JweDecrypt
from headgate.gateway.plugins.jwt_auth import JwtAuth
from headgate.gateway.plugins.kafka_logger import KafkaLogger
from headgate.gateway.plugins.key_auth import KeyAuth
from headgate.gateway.plugins.ldap_auth import LdapAuth
from headgate.gateway.plugins.limit_conn import LimitConn
from headgate.gateway.plugins.limit_count import LimitCount
from headgate.gateway.plugins.limit_req import LimitReq
from headgate.gateway.plugins.mocking import Mocking
from headgate.gateway.plugins.multi_auth import MultiAuth
from headgate.gateway.plugins.opa import Opa
from headgate.gateway.plugins.openid_connect import OpenidConnect
from headgate.gateway.plugins.opentelemetry import Opentelemetry
from headgate.gateway.plugins.prometheus import Prometheus
from headgate.gateway.plugins.proxy_cache import ProxyCache
from headgate.gateway.plugins.proxy_mirror import ProxyMirror
from headgate.gateway.plugins.proxy_rewrite import ProxyRewrite
from headgate.gateway.plugins.public_api import PublicApi
from headgate.gateway.plugins.real_ip import RealIp
from headgate.gateway.plugins.redirect import Redirect
from headgate.gateway.plugins.referer_restriction import RefererRestriction
from headgate.gateway.plugins.request_id import RequestId
from headgate.gateway.plugins.request_validation import RequestValidation
from headgate.gateway.plugins.response_rewrite import ResponseRewrite
from headgate.gateway.plugins.syslog import Syslog
from headgate.gateway.plugins.tcp_logger import TcpLogger
from headgate.gateway.plugins.traffic_split import TrafficSplit
from headgate.gateway.plugins.ua_restriction import UaRestriction
from headgate.gateway.plugins.udp_logger import UdpLogger
from headgate.gateway.plugins.uri_blocker import UriBlocker
from headgate.gateway.plugins.wolf_rbac import WolfRbac
from headgate.gateway.plugins.workflow import Workflow
from headgate.gateway.plugins.zstd import Zstd

_ALL: tuple[type[Plugin[Any]], ...] = (
    ApiBreaker,
    AuthzCasbin,
    Bandwidth,
    BasicAuth,
    BodyTransformer,
    Brotli,
    ClientControl,
    ConsumerRestriction,
    Cors,
    Csrf,
    Degraphql,
    Echo,
    ErrorPage,
    FaultInjection,
    FileLogger,
    ForwardAuth,
    GrpcWeb,
    Gzip,
    HmacAuth,
    HttpLogger,
    IpRestriction,
    JweDecrypt,
    JwtAuth,
    KafkaLogger,
    KeyAuth,
    LdapAuth,
    LimitConn,
    LimitCount,
    LimitReq,
    MultiAuth,
    Mocking,
    Opa,
    OpenidConnect,
    Opentelemetry,
    Prometheus,
    ProxyCache,
    ProxyMirror,
    ProxyRewrite,
    PublicApi,
    RealIp,
    Redirect,
    RefererRestriction,
    RequestId,
    RequestValidation,
    ResponseRewrite,
    Syslog,
    TcpLogger,
    TrafficSplit,
    UaRestriction,
    UdpLogger,
    UriBlocker,
    WolfRbac,
    Workflow,
    Zstd,
)

BUILT_IN: Mapping[str, type[Plugin[Any]]] = MappingProxyType({kind.name: kind for kind in _ALL})
"""By name."""
