"""An upstream that stands within the plugin traffic-split, in the plugin's own spelling."""

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, ConfigDict, Field

from headgate.translator.dialects.apisix.models.upstream import MAX_NODES
from headgate.translator.manifests.models import Model

_PORTS = {"http": 80, "https": 443, "grpc": 80, "grpcs": 443}


class Node(Model):
    """One address."""

    host: str = Field(min_length=1, max_length=253, pattern=r"^[A-Za-z0-9._:-]+$", description="Address or host name.")
    port: int | None = Field(default=None, ge=1, le=65535, description="Port; that of the scheme by default.")
    weight: int = Field(default=1, ge=0, le=65535, description="Share among the nodes.")
    priority: int = Field(default=0, description="Nodes of the greatest get requests.")


def _read_nodes(value: Any) -> Any:
    """Read `{"host:port": weight}` as a list."""
    if not isinstance(value, dict):
        return value
    nodes = []
    for name, weight in value.items():
        host, colon, port = name.rpartition(":")
        if not colon or (":" in host and not host.endswith("]")):
            host, port = name, ""
        if port and not port.isdecimal():
            raise ValueError(f"{name[:80]!r} must be host:port")
        nodes.append({"host": host.strip("[]"), "port": int(port) if port else None, "weight": weight})
    return nodes


class InlineUpstream(Model):
    """What the plugin takes of an upstream."""

    model_config = ConfigDict(alias_generator=None)

    type: Literal["roundrobin", "chash", "ewma", "least_conn"] = "roundrobin"
    hash_on: Literal["vars", "header", "cookie", "consumer", "vars_combinations"] = "vars"
    key: str = ""
    nodes: Annotated[tuple[Node, ...], BeforeValidator(_read_nodes)] = Field(min_length=1, max_length=MAX_NODES)
    scheme: Literal["http", "https", "grpc", "grpcs"] = "http"
    pass_host: Literal["pass", "node", "rewrite"] = "pass"
    upstream_host: str = ""
    name: str = ""
    timeout: dict[str, float] | None = None
    """The route's own hold."""
    retries: int | None = None

    def port_of(self, node: Node) -> int:
        """Return the port of a node."""
        return node.port or _PORTS[self.scheme]
