"""Configuration of `forward-auth`."""

from typing import Annotated

from pydantic import Field, StringConstraints

from headgate.common.plugins.called import CalledConfig
from headgate.common.plugins.config import PluginConfig
from headgate.common.plugins.fields import HeaderName, HeaderTemplate, PatternText

StatusText = Annotated[str, StringConstraints(pattern="^([1-5][0-9]{2}|any)$")]
"""A status, or `any` for all others."""
VariableName = Annotated[str, StringConstraints(pattern="^[A-Za-z_][A-Za-z0-9_]*$")]


class VerdictCache(PluginConfig):
    """Answers of the service that are kept, in each worker, for one route."""

    key: str = Field(min_length=1, max_length=8192)
    """Requests with the same text share an answer: a template, `$http_authorization` for example. A text that is the
    same for all clients lets all of them in with the first."""
    durations: dict[StatusText, Annotated[float, Field(gt=0)]] = Field(
        default_factory=lambda: dict.fromkeys(("200", "202", "401"), 300.0), min_length=1
    )
    """Seconds by status. What the service says itself in `Cache-Control` or `Expires` counts first, and an answer with
    `Set-Cookie` is not kept."""


class ForwardAuthConfig(CalledConfig, plugin="forward-auth"):
    """Fields of `forward-auth`; `uri` may have `$` references."""

    is_uri_template = True

    address: str = ""
    """URL of the `upstream`, for `resolves_location`."""
    request_method: str = Field(default="GET", pattern="^[A-Z]+$")
    keeps_method: bool = False
    """Ask with the client's method instead."""
    keeps_path: bool = False
    """With `upstream`: ask for the client's path and query, behind `path` as a prefix."""
    request_body: bool | None = None
    """Send the request's body too; if that is not said, with `POST` only."""
    request_headers: tuple[str, ...] = ()
    """Headers of the client that the service is shown, `Cookie` for example."""
    all_headers: bool = False
    """Show it all of them."""
    forwarded_headers: bool = True
    """Tell it of the request in `X-Forwarded-Method`, `-Proto`, `-Host`, `-Uri` and `-For`."""
    tells_rewritten: bool = False
    """The path in `X-Forwarded-Uri` is the one that plugins before have made, and `X-Forwarded-Port` comes along
    (Traefik)."""
    trusts_forwarded: bool = False
    """What a trusted proxy says in `X-Forwarded-*` is passed on, and the proxy added to `X-Forwarded-For`."""
    upstream_headers: tuple[str, ...] = ()
    """Headers of its answer that the upstream gets; what the client sent under these names is dropped."""
    upstream_headers_regex: PatternText | None = None
    """The same by pattern."""
    all_upstream_headers: bool = False
    """It gets all of them, but for those that are about the answer: `Content-*`, `Date`, `Server`, `Set-Cookie`. Other
    headers of the client stay."""
    answer_variables: dict[VariableName, str] = Field(default_factory=dict)
    """Variables that get the values of headers of its answer, for templates of plugins that run later."""
    client_headers: tuple[str, ...] = ()
    """Headers of its answer that the client gets when the request is refused. `WWW-Authenticate` and `Location` always
    go along."""
    all_client_headers: bool = False
    """It gets all of them."""
    resolves_location: bool = False
    """A relative `Location` is made absolute by the service's address."""
    response_cookies: bool = False
    """The client gets its `Set-Cookie` too when the request passes and succeeds."""
    always_set_cookie: bool = False
    """And when it fails."""
    cookie_names: tuple[str, ...] | None = None
    """Only cookies of these names, which stand in the place of the upstream's."""
    extra_headers: dict[HeaderName, HeaderTemplate] = Field(default_factory=dict)
    """More headers for the service; values may have `$` references, and an empty value takes a client's header away."""
    signin: str | None = None
    """Where a 401 redirects to: a template."""
    signs_in_others: bool = True
    """Also a 401 of another plugin of the route."""
    only_200: bool = False
    """Nothing but 200 lets in (Gateway API). Another 2xx is answered with `status_on_error`."""
    strict_statuses: bool = False
    """Only 2xx lets in, 401 and 403 are answered without the service's body, and all else is a 500."""
    cache: VerdictCache | None = None
    timeout: int = Field(default=3000, ge=1, le=600_000)
    """Milliseconds."""
    allow_degradation: bool = False
    """Let requests pass if the service does not answer."""
    status_on_error: int = Field(default=403, ge=200, le=599)
    """Otherwise they get this."""
    max_req_body_size: int = Field(default=64 << 20, ge=0)
    max_answer_size: int = Field(default=1 << 20, ge=0)
    status_on_long_body: int = Field(default=0, ge=0, le=599)
    """Answered if the body of the request, or of the service's answer, is longer; by default a request's is a 413, and
    an answer's counts as no answer."""
    keepalive: bool = True
    """This and the two that follow are taken for compatibility: connections are kept."""
    keepalive_timeout: int = 60000
    keepalive_pool: int = 5
