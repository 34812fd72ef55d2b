"""Gateways."""

from collections.abc import Mapping
from typing import Any, Final, Literal

from pydantic import Field

from headgate.common.resources import GATEWAY_GROUP
from headgate.translator.dialects.gateway_api.models.names import Hostname
from headgate.translator.manifests.label_selectors import Requirement
from headgate.translator.manifests.models import Model, Name, PortNumber

IP_ADDRESS: Final = "IPAddress"


class LabelExpression(Model):
    """One requirement of a label selector."""

    key: Name
    operator: Literal["In", "NotIn", "Exists", "DoesNotExist"]
    values: tuple[str, ...] = ()

    @property
    def requirement(self) -> Requirement:
        """What is asked of the label."""
        values = frozenset(self.values) if self.operator in ("In", "NotIn") else None
        return Requirement(self.key, values, is_negated=self.operator in ("NotIn", "DoesNotExist"))


class LabelSelector(Model):
    """Labels that an object must have."""

    match_labels: dict[str, str] = Field(default_factory=dict)
    match_expressions: tuple[LabelExpression, ...] = ()

    @property
    def keys(self) -> set[str]:
        """The labels that it looks at."""
        return {*self.match_labels, *(expression.key for expression in self.match_expressions)}

    def takes(self, labels: Mapping[str, str]) -> bool:
        """Whether an object with these labels is selected."""
        return all(labels.get(key) == value for key, value in self.match_labels.items()) and all(
            expression.requirement.takes(labels) for expression in self.match_expressions
        )


class AllowedNamespaces(Model):
    """Namespaces whose objects may attach."""

    from_: Literal["Same", "All", "Selector", "None"] = Field(default="Same", alias="from")
    selector: LabelSelector | None = None


class ListenerNamespaces(AllowedNamespaces):
    """Namespaces whose ListenerSets may attach."""

    from_: Literal["Same", "All", "Selector", "None"] = Field(default="None", alias="from")


class AllowedListeners(Model):
    """Which ListenerSets may attach."""

    namespaces: ListenerNamespaces = ListenerNamespaces()


class RouteGroupKind(Model):
    """A kind of routes."""

    group: str = GATEWAY_GROUP
    kind: Name


class AllowedRoutes(Model):
    """Which routes may attach."""

    namespaces: AllowedNamespaces = AllowedNamespaces()
    kinds: tuple[RouteGroupKind, ...] = ()
    """None: all that fit the protocol."""


class SecretReference(Model):
    """A certificate."""

    group: str = ""
    kind: str = "Secret"
    namespace: str = ""
    """Empty: that of the Gateway."""
    name: Name


class ListenerTls(Model):
    """How TLS is spoken on a listener."""

    mode: Literal["Terminate", "Passthrough"] = "Terminate"
    certificate_refs: tuple[SecretReference, ...] = ()
    options: dict[str, Any] = Field(default_factory=dict)


class ListenerSpec(Model):
    """A listener."""

    name: Name
    hostname: Hostname = ""
    """Empty: every host."""
    port: PortNumber
    protocol: Name
    tls: ListenerTls | None = None
    allowed_routes: AllowedRoutes = AllowedRoutes()


class ParametersReference(Model):
    """An object with further configuration."""

    group: str = ""
    kind: str = ""
    name: str = ""


class Infrastructure(Model):
    """What is said of the objects that a controller makes for a Gateway."""

    labels: dict[str, Any] = Field(default_factory=dict)
    annotations: dict[str, Any] = Field(default_factory=dict)
    parameters_ref: ParametersReference | None = None


class GatewayAddress(Model):
    """An address that a Gateway asks for."""

    type: str = IP_ADDRESS
    value: str = ""
    """Empty: any of the type."""


class GatewayBackendTls(Model):
    """How TLS is spoken with Services."""

    client_certificate_ref: SecretReference | None = None


class GatewaySettings(Model):
    """A Gateway but for its listeners."""

    gateway_class_name: Name
    addresses: tuple[GatewayAddress, ...] = Field(default=(), max_length=16)
    infrastructure: Infrastructure | None = None
    allowed_listeners: AllowedListeners = AllowedListeners()
    tls: dict[str, Any] | None = None
    default_scope: str = ""


class ParentGateway(Model):
    """The Gateway that a ListenerSet is for."""

    group: str = GATEWAY_GROUP
    kind: Literal["Gateway"] = "Gateway"
    namespace: str = ""
    """Empty: that of the ListenerSet."""
    name: Name


class ListenerSetSettings(Model):
    """A ListenerSet but for its listeners."""

    parent_ref: ParentGateway


class GatewayClassSpec(Model):
    """A GatewayClass."""

    controller_name: Name
    description: str = ""
    parameters_ref: dict[str, Any] | None = None
