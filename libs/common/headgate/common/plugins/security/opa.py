"""Configuration of `opa`."""

from typing import Annotated

from pydantic import AfterValidator, Field

from headgate.common.plugins.config import PluginConfig
from headgate.common.plugins.fields import HeaderName, check_url


def _checked_host(text: str) -> str:
    check_url(text)
    return text.rstrip("/")


class OpaConfig(PluginConfig, plugin="opa"):
    """Fields of `opa`."""

    host: Annotated[str, AfterValidator(_checked_host)]
    """Where Open Policy Agent is: `http://opa.example:8181`."""
    policy: str = Field(min_length=1, max_length=256, pattern="^[A-Za-z0-9._~/-]+$")
    """Path of the document with the decision: `shop/orders`."""
    ssl_verify: bool = True
    timeout: int = Field(default=3000, ge=1, le=60_000)
    """Milliseconds."""
    with_route: bool = False
    """Tell it which route it is."""
    with_service: bool = False
    """And which upstreams the route has."""
    with_consumer: bool = False
    """And whose request it is."""
    with_body: bool = False
    """And the request's body: as an object if it is JSON, else as text."""
    max_req_body_size: int = Field(default=1 << 20, gt=0)
    """Bytes of a body that is sent to the service; with more the answer is 413."""
    send_headers_upstream: tuple[HeaderName, ...] = ()
    """Headers of its decision that the upstream gets; what the client sent under these names is dropped."""
    keepalive: bool = True
    """This and the two that follow are taken for compatibility: connections are kept."""
    keepalive_timeout: int = 60000
    keepalive_pool: int = 5
