"""The upstreams of the table, as plugins may choose them."""

from collections.abc import Collection
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from headgate.gateway.proxy.endpoint_pool import EndpointPool
    from headgate.gateway.proxy.request_source import RequestSource


class Endpoints(Protocol):
    """One upstream of the table: `balancing.upstream.UpstreamHolder`."""

    key: str

    @property
    def unavailable(self) -> str:
        """Why `choose` gave None."""

    def choose(self, tried: "Collection[EndpointPool]", source: "RequestSource") -> "EndpointPool | None":
        """Balanced choice of an endpoint."""


class NoEndpoints:
    """An upstream of which nothing is known."""

    def __init__(self, key: str) -> None:
        self.key = key
        self.unavailable = f"{key} is not in the table"

    def choose(self, tried: "Collection[EndpointPool]", source: "RequestSource") -> None:
        """Choose nothing."""
