"""Configuration of `grpc-web`."""

from headgate.common.plugins.config import PluginConfig
from headgate.common.plugins.fields import HeaderValue


class GrpcWebConfig(PluginConfig, plugin="grpc-web"):
    """Fields of `grpc-web`."""

    allow_origins: tuple[str, ...] | None = None
    """Origins whose pages may call, perhaps `*`; none in the list: calls of pages are refused. By default all may."""
    passes_others: bool = False
    """Requests that are no calls of gRPC-Web go on as they are, and paths stay whole."""
    cors_allow_headers: HeaderValue = "content-type,x-grpc-web,x-user-agent"
    """Headers that pages of other origins may send."""
