"""The plugins that come with the gateway."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from headgate.gateway.plugins.built_in.ai.ai_prompt_decorator import AiPromptDecorator
from headgate.gateway.plugins.built_in.ai.ai_prompt_guard import AiPromptGuard
from headgate.gateway.plugins.built_in.ai.ai_prompt_template import AiPromptTemplate
from headgate.gateway.plugins.built_in.ai.ai_proxy import AiProxy
from headgate.gateway.plugins.built_in.ai.ai_proxy_multi import AiProxyMulti
from headgate.gateway.plugins.built_in.ai.ai_rate_limiting import AiRateLimiting
from headgate.gateway.plugins.built_in.authentication.basic_auth import BasicAuth
from headgate.gateway.plugins.built_in.authentication.cas.plugin import CasAuth
from headgate.gateway.plugins.built_in.authentication.digest_auth import DigestAuth
from headgate.gateway.plugins.built_in.authentication.ext_authz.plugin import ExtAuthz
from headgate.gateway.plugins.built_in.authentication.forward_auth import ForwardAuth
from headgate.gateway.plugins.built_in.authentication.hmac_auth import HmacAuth
from headgate.gateway.plugins.built_in.authentication.jwe_decrypt import JweDecrypt
from headgate.gateway.plugins.built_in.authentication.jwt_auth import JwtAuth
from headgate.gateway.plugins.built_in.authentication.key_auth import KeyAuth
from headgate.gateway.plugins.built_in.authentication.ldap_auth import LdapAuth
from headgate.gateway.plugins.built_in.authentication.multi_auth import MultiAuth
from headgate.gateway.plugins.built_in.authentication.openid_connect.plugin import OpenidConnect
from headgate.gateway.plugins.built_in.authentication.wolf.public_api import PublicApi
from headgate.gateway.plugins.built_in.authentication.wolf.wolf_rbac import WolfRbac
from headgate.gateway.plugins.built_in.limits.api_breaker import ApiBreaker
from headgate.gateway.plugins.built_in.limits.bandwidth import Bandwidth
from headgate.gateway.plugins.built_in.limits.circuit_breaker import CircuitBreaker
from headgate.gateway.plugins.built_in.limits.client_control import ClientControl
from headgate.gateway.plugins.built_in.limits.limit_conn import LimitConn
from headgate.gateway.plugins.built_in.limits.limit_count import LimitCount
from headgate.gateway.plugins.built_in.limits.limit_req import LimitReq
from headgate.gateway.plugins.built_in.limits.workflow import Workflow
from headgate.gateway.plugins.built_in.observability.elasticsearch_logger import ElasticsearchLogger
from headgate.gateway.plugins.built_in.observability.file_logger import FileLogger
from headgate.gateway.plugins.built_in.observability.http_logger import HttpLogger
from headgate.gateway.plugins.built_in.observability.kafka.kafka_logger import KafkaLogger
from headgate.gateway.plugins.built_in.observability.loki_logger import LokiLogger
from headgate.gateway.plugins.built_in.observability.opentelemetry import Opentelemetry
from headgate.gateway.plugins.built_in.observability.prometheus import Prometheus
from headgate.gateway.plugins.built_in.observability.syslog import Syslog
from headgate.gateway.plugins.built_in.observability.tcp_logger import TcpLogger
from headgate.gateway.plugins.built_in.observability.udp_logger import UdpLogger
from headgate.gateway.plugins.built_in.observability.vendors.clickhouse_logger import ClickhouseLogger
from headgate.gateway.plugins.built_in.observability.vendors.datadog import Datadog
from headgate.gateway.plugins.built_in.observability.vendors.google_cloud_logging import GoogleCloudLogging
from headgate.gateway.plugins.built_in.observability.vendors.loggly import Loggly
from headgate.gateway.plugins.built_in.observability.vendors.skywalking_logger import SkywalkingLogger
from headgate.gateway.plugins.built_in.observability.vendors.splunk_hec_logging import SplunkHecLogging
from headgate.gateway.plugins.built_in.security.acl import Acl
from headgate.gateway.plugins.built_in.security.authz_casbin import AuthzCasbin
from headgate.gateway.plugins.built_in.security.client_certificate import ClientCertificate
from headgate.gateway.plugins.built_in.security.consumer_restriction import ConsumerRestriction
from headgate.gateway.plugins.built_in.security.cors import Cors
from headgate.gateway.plugins.built_in.security.csrf import Csrf
from headgate.gateway.plugins.built_in.security.hsts import Hsts
from headgate.gateway.plugins.built_in.security.ip_restriction import IpRestriction
from headgate.gateway.plugins.built_in.security.keycloak.authz_keycloak import AuthzKeycloak
from headgate.gateway.plugins.built_in.security.opa import Opa
from headgate.gateway.plugins.built_in.security.referer_restriction import RefererRestriction
from headgate.gateway.plugins.built_in.security.satisfy_any import SatisfyAny
from headgate.gateway.plugins.built_in.security.ua_restriction import UaRestriction
from headgate.gateway.plugins.built_in.security.uri_blocker import UriBlocker
from headgate.gateway.plugins.built_in.traffic.attach_consumer_label import AttachConsumerLabel
from headgate.gateway.plugins.built_in.traffic.nginx_rewrite import NginxRewrite
from headgate.gateway.plugins.built_in.traffic.proxy_cache.plugin import ProxyCache
from headgate.gateway.plugins.built_in.traffic.proxy_mirror import ProxyMirror
from headgate.gateway.plugins.built_in.traffic.proxy_rewrite import ProxyRewrite
from headgate.gateway.plugins.built_in.traffic.python_hook import PythonHook
from headgate.gateway.plugins.built_in.traffic.real_ip import RealIp
from headgate.gateway.plugins.built_in.traffic.redirect import Redirect
from headgate.gateway.plugins.built_in.traffic.request_id import RequestId
from headgate.gateway.plugins.built_in.traffic.response_buffering import ResponseBuffering
from headgate.gateway.plugins.built_in.traffic.traffic_split import TrafficSplit
from headgate.gateway.plugins.built_in.transformation.body_transformer.plugin import BodyTransformer
from headgate.gateway.plugins.built_in.transformation.compression.brotli import Brotli
from headgate.gateway.plugins.built_in.transformation.compression.gzip import Gzip
from headgate.gateway.plugins.built_in.transformation.compression.zstd import Zstd
from headgate.gateway.plugins.built_in.transformation.content_type import ContentType
from headgate.gateway.plugins.built_in.transformation.degraphql import Degraphql
from headgate.gateway.plugins.built_in.transformation.echo import Echo
from headgate.gateway.plugins.built_in.transformation.error_page import ErrorPage
from headgate.gateway.plugins.built_in.transformation.fault_injection import FaultInjection
from headgate.gateway.plugins.built_in.transformation.grpc_transcode.plugin import GrpcTranscode
from headgate.gateway.plugins.built_in.transformation.grpc_web import GrpcWeb
from headgate.gateway.plugins.built_in.transformation.mocking import Mocking
from headgate.gateway.plugins.built_in.transformation.oas_validator.plugin import OasValidator
from headgate.gateway.plugins.built_in.transformation.proxy_redirect import ProxyRedirect
from headgate.gateway.plugins.built_in.transformation.request_validation import RequestValidation
from headgate.gateway.plugins.built_in.transformation.response_rewrite import ResponseRewrite
from headgate.gateway.plugins.interface import Plugin

_ALL: tuple[type[Plugin[Any]], ...] = (
    Acl,
    AiPromptDecorator,
    AiPromptGuard,
    AiPromptTemplate,
    AiProxy,
    AiProxyMulti,
    AiRateLimiting,
    ApiBreaker,
    AttachConsumerLabel,
    AuthzCasbin,
    AuthzKeycloak,
    Bandwidth,
    BasicAuth,
    BodyTransformer,
    Brotli,
    CasAuth,
    CircuitBreaker,
    ClickhouseLogger,
    ClientCertificate,
    ClientControl,
    ConsumerRestriction,
    ContentType,
    Cors,
    Csrf,
    Datadog,
    Degraphql,
    DigestAuth,
    Echo,
    ElasticsearchLogger,
    ErrorPage,
    ExtAuthz,
    FaultInjection,
    FileLogger,
    ForwardAuth,
    GoogleCloudLogging,
    GrpcTranscode,
    GrpcWeb,
    Gzip,
    HmacAuth,
    Hsts,
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
    Loggly,
    LokiLogger,
    Mocking,
    MultiAuth,
    NginxRewrite,
    OasValidator,
    Opa,
    OpenidConnect,
    Opentelemetry,
    Prometheus,
    ProxyCache,
    ProxyMirror,
    ProxyRedirect,
    ProxyRewrite,
    PythonHook,
    PublicApi,
    RealIp,
    Redirect,
    RefererRestriction,
    RequestId,
    RequestValidation,
    ResponseBuffering,
    ResponseRewrite,
    SatisfyAny,
    SkywalkingLogger,
    SplunkHecLogging,
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
