"""HTTPRoutes but for filters."""

from typing import Annotated, Literal

from pydantic import Field

from headgate.common.resources import GATEWAY, GATEWAY_GROUP
from headgate.translator.dialects.gateway_api.models.backend import BackendReference
from headgate.translator.dialects.gateway_api.models.filters import RouteFilter
from headgate.translator.dialects.gateway_api.models.names import Hostname, SectionName
from headgate.translator.manifests.models import Model, Name, PortNumber, Seconds

StatusCode = Annotated[int, Field(ge=400, le=599)]


class ParentReference(Model):
    """What a route is attached to."""

    group: str = GATEWAY_GROUP
    kind: str = GATEWAY.kind
    namespace: str = ""
    """Empty: that of the route."""
    name: Name
    section_name: str = ""
    """Empty: all listeners."""
    port: PortNumber | None = None


class RouteSettings(Model):
    """An HTTPRoute but for its rules."""

    parent_refs: tuple[ParentReference, ...] = ()
    hostnames: tuple[Hostname, ...] = ()
    use_default_gateways: str = ""


class PathMatcher(Model):
    """What is asked of a path."""

    type: Literal["Exact", "PathPrefix", "RegularExpression"] = "PathPrefix"
    value: str = Field(default="/", max_length=1024)


class ValueMatcher(Model):
    """What is asked of a header or a query parameter."""

    type: Literal["Exact", "RegularExpression"] = "Exact"
    name: Name
    value: str


class RouteMatch(Model):
    """What a request must be; all of it."""

    path: PathMatcher = PathMatcher()
    headers: tuple[ValueMatcher, ...] = ()
    query_params: tuple[ValueMatcher, ...] = ()
    method: str = ""


class WeightedBackend(BackendReference):
    """A Service with its share of the requests."""

    weight: int = Field(default=1, ge=0, le=1_000_000)
    filters: tuple[RouteFilter, ...] = ()


class RuleTimeouts(Model):
    """How long a request may take."""

    request: Seconds | None = None
    backend_request: Seconds | None = None


class RuleRetry(Model):
    """When a request is sent again (GEP-1731)."""

    codes: tuple[StatusCode, ...] = ()
    attempts: int | None = Field(default=None, ge=0)
    """Besides the first."""
    backoff: Seconds | None = None


_SessionName = Annotated[str, Field(pattern=r"^[A-Za-z0-9._-]+$", max_length=128)]


class CookieConfig(Model):
    """How long a cookie lasts, and in releases after 1.6 its name and path."""

    name: _SessionName | None = None
    path: Annotated[str, Field(pattern=r"^[!-:<-~]*$", max_length=1024)] = "/"
    lifetime_type: Literal["Session", "Permanent"] = "Session"


class HeaderConfig(Model):
    """The header of a session, in releases after 1.6."""

    name: _SessionName


class SessionPersistence(Model):
    """How clients keep to the Service's pod that served them first (GEP-1619)."""

    session_name: _SessionName | None = None
    type: Literal["Cookie", "Header"] = "Cookie"
    absolute_timeout: Seconds | None = None
    idle_timeout: Seconds | None = None
    cookie_config: CookieConfig = CookieConfig()
    """As 1.6 has it; later releases call it `cookie`."""
    cookie: CookieConfig | None = None
    header: HeaderConfig | None = None


class RouteRule(Model):
    """A rule."""

    name: SectionName | None = None
    matches: tuple[RouteMatch, ...] = ()
    """None: every request."""
    filters: tuple[RouteFilter, ...] = ()
    backend_refs: tuple[WeightedBackend, ...] = ()
    timeouts: RuleTimeouts | None = None
    retry: RuleRetry | None = None
    session_persistence: SessionPersistence | None = None
