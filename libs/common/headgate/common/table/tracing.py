"""Which requests of a route are traced, and what their spans say besides."""

from typing import Annotated, Any

from pydantic import AliasChoices, BeforeValidator, Field

from headgate.common.table.base import Entry


class Tracing(Entry):
    """What a route says of the traces of its requests."""

    share: float | None = Field(default=None, ge=0, le=1)
    """Of the requests that begin a trace of their own; None leaves the gateway's own setting in force."""
    heeds_parent: bool = True
    """Trace context that a request comes with decides whether it is traced, and not the share."""
    attributes: tuple[str, ...] = ()
    """Variables that the span of a request has as attributes."""
    headers: tuple[str, ...] = ()
    """Names of headers that it has, in any case; with a star at the end all that begin so."""


def _from_schema_6(value: Any) -> Any:
    return {"share": value} if value is None or isinstance(value, int | float) else value


RouteTracing = Annotated[
    Tracing, BeforeValidator(_from_schema_6), Field(validation_alias=AliasChoices("tracing", "trace_share"))
]
"""A field `tracing`, of which tables up to schema 6 have the share alone, as `trace_share`."""
