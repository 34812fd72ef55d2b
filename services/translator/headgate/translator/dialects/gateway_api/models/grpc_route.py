"""Rules of GRPCRoutes."""

from typing import Annotated, Literal

from pydantic import Field

from headgate.translator.dialects.gateway_api.models.filters import RouteFilter
from headgate.translator.dialects.gateway_api.models.names import SectionName
from headgate.translator.dialects.gateway_api.models.route import SessionPersistence, ValueMatcher, WeightedBackend
from headgate.translator.manifests.models import Model

_Text = Annotated[str, Field(max_length=1024)]


class GrpcMethod(Model):
    """Which methods are called."""

    type: Literal["Exact", "RegularExpression"] = "Exact"
    service: _Text = ""
    """Empty: any."""
    method: _Text = ""
    """Empty: any."""


class GrpcMatch(Model):
    """What a call must be; all of it."""

    method: GrpcMethod | None = None
    headers: tuple[ValueMatcher, ...] = ()


class GrpcRule(Model):
    """A rule."""

    name: SectionName | None = None
    matches: tuple[GrpcMatch, ...] = ()
    """None: every call."""
    filters: tuple[RouteFilter, ...] = ()
    backend_refs: tuple[WeightedBackend, ...] = ()
    session_persistence: SessionPersistence | None = None
