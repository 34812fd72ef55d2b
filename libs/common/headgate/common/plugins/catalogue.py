"""The built-in plugins by name, and what each of them is told."""

from collections.abc import Mapping
from types import MappingProxyType

from headgate.common.plugins.ai.prompts import AiPromptDecoratorConfig, AiPromptGuardConfig, AiPromptTemplateConfig
from headgate.common.plugins.ai.proxy import AiProxyConfig, AiProxyMultiConfig
from headgate.common.plugins.ai.rate_limiting import AiRateLimitingConfig
from headgate.common.plugins.authentication.basic_auth import BasicAuthConfig
from headgate.common.plugins.authentication.cas_auth import CasAuthConfig
from headgate.common.plugins.authentication.digest_auth import DigestAuthConfig
from headgate.common.plugins.authentication.ext_authz import ExtAuthzConfig
from headgate.common.plugins.authentication.forward_auth import ForwardAuthConfig
from headgate.common.plugins.authentication.hmac_auth import HmacAuthConfig
from headgate.common.plugins.authentication.jwe_decrypt import JweDecryptConfig
from headgate.common.plugins.authentication.jwt_auth import JwtAuthConfig
from headgate.common.plugins.authentication.key_auth import KeyAuthConfig
from headgate.common.plugins.authentication.ldap_auth import LdapAuthConfig
from headgate.common.plugins.authentication.multi_auth import MultiAuthConfig
from headgate.common.plugins.authentication.openid_connect import OpenidConnectConfig
from headgate.common.plugins.authentication.wolf_rbac import WolfRbacConfig
from headgate.common.plugins.config import PluginConfig
from headgate.common.plugins.limits.api_breaker import ApiBreakerConfig
from headgate.common.plugins.limits.bandwidth import BandwidthConfig
from headgate.common.plugins.limits.circuit_breaker import CircuitBreakerConfig
from headgate.common.plugins.limits.client_control import ClientControlConfig
from headgate.common.plugins.limits.limits import LimitConnConfig, LimitCountConfig, LimitReqConfig
from headgate.common.plugins.limits.workflow import WorkflowConfig
from headgate.common.plugins.observability.loggers import (
    ElasticsearchLoggerConfig,
    FileLoggerConfig,
    HttpLoggerConfig,
    KafkaLoggerConfig,
    LokiLoggerConfig,
    SyslogConfig,
    TcpLoggerConfig,
    UdpLoggerConfig,
)
from headgate.common.plugins.observability.opentelemetry import OpentelemetryConfig
from headgate.common.plugins.observability.prometheus import PrometheusConfig, PublicApiConfig
from headgate.common.plugins.observability.vendor_loggers import (
    ClickhouseLoggerConfig,
    DatadogConfig,
    GoogleCloudLoggingConfig,
    LogglyConfig,
    SkywalkingLoggerConfig,
    SplunkHecLoggingConfig,
)
from headgate.common.plugins.security.acl import AclConfig
from headgate.common.plugins.security.authz_casbin import AuthzCasbinConfig
from headgate.common.plugins.security.authz_keycloak import AuthzKeycloakConfig
from headgate.common.plugins.security.client_certificate import ClientCertificateConfig
from headgate.common.plugins.security.consumer_restriction import ConsumerRestrictionConfig
from headgate.common.plugins.security.cors import CorsConfig
from headgate.common.plugins.security.csrf import CsrfConfig
from headgate.common.plugins.security.hsts import HstsConfig
from headgate.common.plugins.security.ip_restriction import IpRestrictionConfig
from headgate.common.plugins.security.opa import OpaConfig
from headgate.common.plugins.security.restrictions import (
    RefererRestrictionConfig,
    UaRestrictionConfig,
    UriBlockerConfig,
)
from headgate.common.plugins.security.satisfy_any import SatisfyAnyConfig
from headgate.common.plugins.traffic.attach_consumer_label import AttachConsumerLabelConfig
from headgate.common.plugins.traffic.nginx_rewrite import NginxRewriteConfig
from headgate.common.plugins.traffic.proxy_cache import ProxyCacheConfig
from headgate.common.plugins.traffic.proxy_mirror import ProxyMirrorConfig
from headgate.common.plugins.traffic.proxy_rewrite import ProxyRewriteConfig
from headgate.common.plugins.traffic.python_hook import PythonHookConfig
from headgate.common.plugins.traffic.real_ip import RealIpConfig
from headgate.common.plugins.traffic.redirect import RedirectConfig
from headgate.common.plugins.traffic.request_id import RequestIdConfig
from headgate.common.plugins.traffic.response_buffering import ResponseBufferingConfig
from headgate.common.plugins.traffic.traffic_split import TrafficSplitConfig
from headgate.common.plugins.transformation.body_transformer import BodyTransformerConfig
from headgate.common.plugins.transformation.compression import BrotliConfig, GzipConfig, ZstdConfig
from headgate.common.plugins.transformation.content_type import ContentTypeConfig
from headgate.common.plugins.transformation.degraphql import DegraphqlConfig
from headgate.common.plugins.transformation.echo import EchoConfig
from headgate.common.plugins.transformation.error_page import ErrorPageConfig
from headgate.common.plugins.transformation.fault_injection import FaultInjectionConfig
from headgate.common.plugins.transformation.grpc_transcode import GrpcTranscodeConfig
from headgate.common.plugins.transformation.grpc_web import GrpcWebConfig
from headgate.common.plugins.transformation.mocking import MockingConfig
from headgate.common.plugins.transformation.oas_validator import OasValidatorConfig
from headgate.common.plugins.transformation.proxy_redirect import ProxyRedirectConfig
from headgate.common.plugins.transformation.request_validation import RequestValidationConfig
from headgate.common.plugins.transformation.response_rewrite import ResponseRewriteConfig

CONFIGS: Mapping[str, type[PluginConfig]] = MappingProxyType(
    {
        model.plugin: model
        for model in (
            AclConfig,
            AiPromptDecoratorConfig,
            AiPromptGuardConfig,
            AiPromptTemplateConfig,
            AiProxyConfig,
            AiProxyMultiConfig,
            AiRateLimitingConfig,
            ApiBreakerConfig,
            AttachConsumerLabelConfig,
            AuthzCasbinConfig,
            AuthzKeycloakConfig,
            BandwidthConfig,
            BasicAuthConfig,
            BodyTransformerConfig,
            BrotliConfig,
            CasAuthConfig,
            CircuitBreakerConfig,
            ClickhouseLoggerConfig,
            ClientCertificateConfig,
            ClientControlConfig,
            ConsumerRestrictionConfig,
            ContentTypeConfig,
            CorsConfig,
            CsrfConfig,
            DatadogConfig,
            DegraphqlConfig,
            DigestAuthConfig,
            EchoConfig,
            ElasticsearchLoggerConfig,
            ErrorPageConfig,
            ExtAuthzConfig,
            FaultInjectionConfig,
            FileLoggerConfig,
            ForwardAuthConfig,
            GoogleCloudLoggingConfig,
            GrpcTranscodeConfig,
            GrpcWebConfig,
            GzipConfig,
            HmacAuthConfig,
            HstsConfig,
            HttpLoggerConfig,
            IpRestrictionConfig,
            JweDecryptConfig,
            JwtAuthConfig,
            KafkaLoggerConfig,
            KeyAuthConfig,
            LdapAuthConfig,
            LimitConnConfig,
            LimitCountConfig,
            LimitReqConfig,
            LogglyConfig,
            LokiLoggerConfig,
            MockingConfig,
            MultiAuthConfig,
            NginxRewriteConfig,
            OasValidatorConfig,
            OpaConfig,
            OpenidConnectConfig,
            OpentelemetryConfig,
            PrometheusConfig,
            ProxyCacheConfig,
            ProxyMirrorConfig,
            ProxyRedirectConfig,
            ProxyRewriteConfig,
            PythonHookConfig,
            PublicApiConfig,
            RealIpConfig,
            RedirectConfig,
            RefererRestrictionConfig,
            RequestIdConfig,
            RequestValidationConfig,
            ResponseBufferingConfig,
            ResponseRewriteConfig,
            SatisfyAnyConfig,
            SkywalkingLoggerConfig,
            SplunkHecLoggingConfig,
            SyslogConfig,
            TcpLoggerConfig,
            TrafficSplitConfig,
            UaRestrictionConfig,
            UdpLoggerConfig,
            UriBlockerConfig,
            WolfRbacConfig,
            WorkflowConfig,
            ZstdConfig,
        )
    }
)
