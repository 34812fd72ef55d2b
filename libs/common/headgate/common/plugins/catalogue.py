"""The built-in plugins by name, and what each of them is told."""

from collections.abc import Mapping
from types import MappingProxyType

from headgate.common.plugins.bandwidth import BandwidthConfig
from headgate.common.plugins.basic_auth import BasicAuthConfig
from headgate.common.plugins.client_control import ClientControlConfig
from headgate.common.plugins.compression import BrotliConfig, GzipConfig, ZstdConfig
from headgate.common.plugins.config import PluginConfig
from headgate.common.plugins.cors import CorsConfig
from headgate.common.plugins.error_page import ErrorPageConfig
from headgate.common.plugins.fault_injection import FaultInjectionConfig
from headgate.common.plugins.forward_auth import ForwardAuthConfig
from headgate.common.plugins.ip_restriction import IpRestrictionConfig
from headgate.common.plugins.limits import LimitConnConfig, LimitCountConfig, LimitReqConfig
from headgate.common.plugins.proxy_mirror import ProxyMirrorConfig
from headgate.common.plugins.proxy_rewrite import ProxyRewriteConfig
from headgate.common.plugins.redirect import RedirectConfig
from headgate.common.plugins.request_id import RequestIdConfig
from headgate.common.plugins.response_rewrite import ResponseRewriteConfig

CONFIGS: Mapping[str, type[PluginConfig]] = MappingProxyType(
    {
        "bandwidth": BandwidthConfig,
        "basic-auth": BasicAuthConfig,
        "brotli": BrotliConfig,
        "client-control": ClientControlConfig,
        "cors": CorsConfig,
        "error-page": ErrorPageConfig,
        "fault-injection": FaultInjectionConfig,
        "forward-auth": ForwardAuthConfig,
        "gzip": GzipConfig,
        "ip-restriction": IpRestrictionConfig,
        "limit-conn": LimitConnConfig,
        "limit-count": LimitCountConfig,
        "limit-req": LimitReqConfig,
        "proxy-mirror": ProxyMirrorConfig,
        "proxy-rewrite": ProxyRewriteConfig,
        "redirect": RedirectConfig,
        "request-id": RequestIdConfig,
        "response-rewrite": ResponseRewriteConfig,
        "zstd": ZstdConfig,
    }
)
