"""What `forward-auth` is told."""

from pydantic import Field

from headgate.common.plugins.called import CalledConfig
from headgate.common.plugins.fields import HeaderName, HeaderTemplate, PatternText


class ForwardAuthConfig(CalledConfig, plugin="forward-auth"):
    """Fields of `forward-auth`."""

    request_method: str = Field(default="GET", pattern="^[A-Z]+$")
    """With `POST` the request's body is sent too."""
    request_headers: tuple[str, ...] = ()
    """Headers of the client that the service is shown, `Cookie` for example."""
    all_headers: bool = False
    """Show it all of them."""
    upstream_headers: tuple[str, ...] = ()
    """Headers of its answer that the upstream gets; what the client sent under these names is dropped."""
    upstream_headers_regex: PatternText | None = None
    """The same by pattern."""
    client_headers: tuple[str, ...] = ()
    """Headers of its answer that the client gets when the request is refused. `WWW-Authenticate` and `Location` always
    go along."""
    response_cookies: bool = False
    """The client gets its `Set-Cookie` too when the request passes and succeeds."""
    always_set_cookie: bool = False
    """And when it fails."""
    extra_headers: dict[HeaderName, HeaderTemplate] = Field(default_factory=dict)
    """More headers for the service; values may have `$` references."""
    signin: str | None = None
    """Where a 401 redirects to: a template."""
    strict_statuses: bool = False
    timeout: int = Field(default=3000, ge=1, le=600_000)
    """Milliseconds."""
    allow_degradation: bool = False
    """Let requests pass if the service does not answer."""
    status_on_error: int = Field(default=403, ge=200, le=599)
    """Otherwise they get this."""
    max_req_body_size: int = Field(default=64 << 20, gt=0)
    keepalive: bool = True
    """This and the two that follow are taken for compatibility: connections are kept."""
    keepalive_timeout: int = 60000
    keepalive_pool: int = 5
