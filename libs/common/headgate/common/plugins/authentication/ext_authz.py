"""Configuration of `ext-authz`."""

from pydantic import Field

from headgate.common.plugins.config import PluginConfig


class ExtAuthzConfig(PluginConfig, plugin="ext-authz"):
    """Fields of `ext-authz`."""

    upstream: str = Field(min_length=1)
    """Key of an upstream of the table that speaks HTTP/2."""
    request_headers: tuple[str, ...] = ()
    """Headers of the request that the service is shown; all without any."""
    max_req_body_size: int = Field(default=0, ge=0)
    """The service is shown a body of so many bytes at most, and longer ones are refused with 413; 0: it is shown
    none."""
    timeout: int = Field(default=3000, ge=1, le=600_000)
    """Milliseconds."""
    status_on_error: int = Field(default=403, ge=400, le=599)
    """Answered if the service gives no answer that can be followed."""
    max_answer_size: int = Field(default=1 << 20, ge=0, le=4 << 20)
