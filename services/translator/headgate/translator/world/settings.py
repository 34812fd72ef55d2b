"""What the operator's settings say of the translation of all objects."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from headgate.common.resources.references import NGINX_PREFIX
from headgate.common.selection import EVERYTHING, Selection
from headgate.common.status import CONTROLLER_NAME, GATEWAY_CONTROLLER_NAME
from headgate.translator.world.address_pool import NO_POOL, AddressPool
from headgate.translator.world.entry_points import OWN_ENTRY_POINTS, EntryPoint

RuleSyntax = Literal["v3", "v2"]
ChallengeType = Literal["http-01", "tls-alpn-01", "dns-01"]


@dataclass(frozen=True, slots=True)
class NginxSettings:
    """What ingress-nginx is told by its command line. ConfigMaps and Services are written `namespace/name`."""

    config_map: str = "ingress-nginx/ingress-nginx-controller"
    tcp_services: str = "ingress-nginx/tcp-services"
    udp_services: str = "ingress-nginx/udp-services"
    annotations_prefix: str = NGINX_PREFIX
    """Before the names of annotations, without the slash."""
    disable_catch_all: bool = False
    """Whether Ingresses with a default backend are left out."""
    take_status: bool = False
    """Whether addresses are written to Ingresses of classes of ingress-nginx."""
    enable_ssl_passthrough: bool = False
    """Whether the annotation `ssl-passthrough` counts."""
    disable_external_names: bool = False
    """Whether Services of type ExternalName are no backends."""
    allow_snippets: bool = False
    """Whether snippets on Ingresses are followed."""
    default_backend: str = ""
    """Service that answers for hosts that no object has, and for custom errors; empty for none."""
    namespace_selector: str = ""
    """Labels of the namespaces whose Ingresses may be ours; empty: all are."""
    default_certificate: str = ""
    """TLS Secret whose certificate is presented for hosts that have none; empty for none."""


@dataclass(frozen=True, slots=True)
class TraefikSettings:
    """The options of Traefik's provider of Kubernetes CRDs."""

    ingress_class: str = ""
    """Class of the IngressRoutes that are ours; empty: those without a class, or of the class `traefik`."""
    allow_cross_namespace: bool = False
    """Whether objects may refer to objects of other namespaces."""
    cross_provider_namespaces: tuple[str, ...] = ("*",)
    """Namespaces, or patterns of them, whose objects may refer to others with `@` and a provider."""
    allow_external_names: bool = False
    """Whether Services of type ExternalName may be referred to."""
    allow_empty_services: bool = False
    """Whether Services without ready endpoints are as they should be, and are not reported."""
    default_rule_syntax: RuleSyntax = "v3"
    """Of rules that do not say theirs."""
    strict_prefix_matching: bool = False
    """Whether paths of type Prefix of Ingresses that are read as Traefik's are compared by their elements."""
    native_lb_by_default: bool = False
    """Whether Services are asked at their cluster IP if nothing is said."""
    namespaces: tuple[str, ...] = ()
    """Namespaces, or patterns of them, whose objects are read; empty: all are."""
    label_selector: str = ""
    """Labels of the objects that are read; empty: all are."""


@dataclass(frozen=True, slots=True)
class AcmeNames:
    """Of which authorities certificates can be ordered."""

    table: str = ""
    resolvers: Mapping[str, ChallengeType] = field(default_factory=dict)
    """By name: how an authority is shown that a host is ours."""

    @property
    def default(self) -> str:
        """The resolver that `true` names: the only one, or the one of that name."""
        return next(iter(self.resolvers)) if len(self.resolvers) == 1 else "default"


@dataclass(frozen=True, slots=True)
class TranslationSettings:
    """Which objects are ours by their class, and which plugins may be named."""

    controller_names: frozenset[str] = frozenset()
    """Controllers whose classes are adopted, such as `k8s.io/ingress-nginx`."""
    class_names: frozenset[str] = frozenset({"headgate"})
    """Names that count as ours where no IngressClass of that name exists."""
    class_by_name: bool = False
    """Whether they count as ours whatever the controller of their IngressClass is."""
    watch_without_class: bool = False
    """Whether every object without a class is ours."""
    plugin_names: frozenset[str] = frozenset()
    """Third-party plugins that gateways have."""
    ignored_plugins: frozenset[str] = frozenset()
    """Plugins that gateways lack and that routes are served without, whatever they keep out."""
    scoped_consumers: bool = False
    """Whether consumers are recognised on routes of their own namespace only."""
    nginx: NginxSettings = NginxSettings()
    traefik: TraefikSettings = TraefikSettings()
    acme: AcmeNames = AcmeNames()
    entry_points: tuple[EntryPoint, ...] = OWN_ENTRY_POINTS
    """Ports of the gateways by the names that Traefik's resources give them."""
    gateway_addresses: AddressPool = NO_POOL
    """Addresses that Gateways have for themselves; without any they have those of the gateways."""
    have_infrastructure: bool = False
    """Whether watchers make a ServiceAccount for each Gateway."""
    selection: Selection = EVERYTHING
    """Clusters and namespaces of the table's objects, where all of them are asked about something."""

    def owns(self, controller: str) -> bool:
        """Whether classes of a controller are ours."""
        return controller == CONTROLLER_NAME or controller in self.controller_names

    def owns_gateways_of(self, controller: str) -> bool:
        """Whether GatewayClasses of a controller are ours."""
        return controller == GATEWAY_CONTROLLER_NAME or controller in self.controller_names


DEFAULT_SETTINGS = TranslationSettings()
