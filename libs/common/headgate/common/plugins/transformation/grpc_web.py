"""What `grpc-web` is told."""

from headgate.common.plugins.config import PluginConfig
from headgate.common.plugins.fields import HeaderValue


class GrpcWebConfig(PluginConfig, plugin="grpc-web"):
    """Fields of `grpc-web`."""

    cors_allow_headers: HeaderValue = "content-type,x-grpc-web,x-user-agent"
    """Headers that pages of other origins may send."""
