"""Settings of the translator."""

from datetime import timedelta
from typing import Any, Literal

from pydantic import Field, field_validator

from headgate.common.leadership.settings import LeaseSettings
from headgate.common.plugins.third_party import installed_names
from headgate.common.resources.references import NGINX_PREFIX, check_nginx_prefix
from headgate.common.selection import Selection, check_patterns, check_table_name
from headgate.common.status import LoadBalancerAddress, is_address
from headgate.common.stores.settings import StoreSettings
from headgate.common.table import DEFAULT_TABLE
from headgate.operations.committing.retention import Retention
from headgate.operations.rollouts.analysis import Thresholds
from headgate.translator.acme_settings import AcmeSettings
from headgate.translator.assembly.boundaries import Boundaries, HostSharing
from headgate.translator.manifests.label_selectors import read_selector
from headgate.translator.serving.rollout.decision import RolloutPolicy
from headgate.translator.sources.addresses import parse_address
from headgate.translator.world.address_pool import read_pool
from headgate.translator.world.entry_point_settings import EntryPointSettings, read_entry_points, split_names
from headgate.translator.world.settings import (
    AcmeNames,
    NginxSettings,
    RuleSyntax,
    TraefikSettings,
    TranslationSettings,
)


class TranslatorSettings(LeaseSettings, StoreSettings, AcmeSettings):
    """What the translator can be told."""

    table: str = Field(default=DEFAULT_TABLE, description="Name of the table that is built; one for all by default.")
    clusters: list[str] = Field(
        default=[],
        description="Clusters that take part in the table, such as paris or eu-*; all by default. Others are not even "
        "waited for.",
    )
    namespaces: list[str] = Field(
        default=[],
        description="Namespaces whose Ingresses and annotated Services are in the table, such as shop or team-*; all "
        "by default. What they refer to is found wherever it is.",
    )
    controller_names: list[str] = Field(
        default=[],
        description="Further controllers whose IngressClasses are adopted, such as k8s.io/ingress-nginx; none by "
        "default, as two controllers would fight over one status.",
    )
    class_names: list[str] = Field(
        default=["headgate"],
        description="Class names that are ours where no IngressClass of that name exists; our own name by default.",
    )
    class_by_name: bool = Field(
        default=False,
        description="Own the classes of class_names by their name, whatever controller an IngressClass of that name "
        "has; off by default, as in ingress-nginx.",
    )
    watch_without_class: bool = Field(
        default=False,
        description="Serve every Ingress without a class; off by default, as in ingress-nginx: only if our class is "
        "the default one, or if the cluster has no IngressClass at all.",
    )
    nginx_allow_snippets: bool = Field(
        default=False,
        description="Follow the snippets of ingress-nginx on Ingresses; off by default, as its "
        "allow-snippet-annotations is: whoever may write an Ingress decides with them about its whole host.",
    )
    traefik_ingress_class: str = Field(
        default="",
        description="Class of the IngressRoutes that are served, as ingressClass of Traefik's provider of CRDs; by "
        "default those without a class, and those of class traefik.",
    )
    traefik_allow_cross_namespace: bool = Field(
        default=False,
        description="Let Traefik's resources refer to Services and middlewares of other namespaces; off by default, as "
        "allowCrossNamespace of its provider is.",
    )
    traefik_cross_provider_namespaces: list[str] = Field(
        default=["*"],
        description="Namespaces whose Traefik resources may refer to others as name@kubernetescrd, such as shop or "
        "team-*; all by default, as with crossProviderNamespaces of its provider, and none if it is empty.",
    )
    traefik_allow_external_name_services: bool = Field(
        default=False,
        description="Let Traefik's resources refer to Services of type ExternalName; off by default, as "
        "allowExternalNameServices of its provider is.",
    )
    traefik_allow_empty_services: bool = Field(
        default=False,
        description="Leave Services without ready endpoints out of the status of Traefik's resources that refer to "
        "them; off by default, as allowEmptyServices of its provider is. They answer 503 in any case.",
    )
    traefik_strict_prefix_matching: bool = Field(
        default=False,
        description="Compare paths of type Prefix by their elements, and not by characters, for Ingresses that are "
        "read as Traefik's; off by default, as strictPrefixMatching of its provider is.",
    )
    traefik_default_rule_syntax: RuleSyntax = Field(
        default="v3",
        description="Syntax of rules of Traefik's resources that do not say theirs, v3 or v2; v3 by default, as in "
        "Traefik.",
    )
    traefik_native_lb_by_default: bool = Field(
        default=False,
        description="Have Services of Traefik's resources asked at their cluster IP unless they say otherwise; off by "
        "default, as nativeLBByDefault of its provider is.",
    )
    traefik_namespaces: list[str] = Field(
        default=[],
        description="Namespaces whose Traefik resources are read, such as shop or team-*; all by default, as with "
        "namespaces of its provider.",
    )
    traefik_label_selector: str = Field(
        default="",
        description="Labels of the Traefik resources that are read, such as team=shop; all are by default, as with "
        "labelSelector of its provider.",
    )
    entrypoints: dict[str, EntryPointSettings] = Field(
        default={},
        description="Entry points that Traefik's resources name, besides web and websecure, which are the gateways' "
        "HTTP and HTTPS ports: db=5432/tcp,dns=53/udp, or a table each in the TOML file; none by default.",
    )
    plugin_names: list[str] = Field(
        default=[],
        description="Third-party plugins of the gateways; none by default, as those whose packages are installed "
        "beside the translator are known.",
    )
    ignored_plugins: list[str] = Field(
        default=[],
        description="Names of plugins that gateways do not have and that routes are served without; none by default: "
        "requests of a route with an unknown plugin are refused, unless it is a logger, a tracer or the like.",
    )
    nginx_configmap: str = Field(
        default="ingress-nginx/ingress-nginx-controller",
        description="ConfigMap with the options of ingress-nginx, whose Ingresses are adopted; that of its chart by "
        "default.",
    )
    nginx_annotations_prefix: str = Field(
        default=NGINX_PREFIX,
        description="Prefix of the annotations of ingress-nginx, as its --annotations-prefix; by default "
        "nginx.ingress.kubernetes.io, as there. Watchers need the same.",
    )
    nginx_tcp_services: str = Field(
        default="ingress-nginx/tcp-services",
        description="ConfigMap with the TCP services of ingress-nginx; that of its documentation by default.",
    )
    nginx_udp_services: str = Field(
        default="ingress-nginx/udp-services",
        description="ConfigMap with the UDP services of ingress-nginx; that of its documentation by default.",
    )
    nginx_default_backend_service: str = Field(
        default="",
        description="Service, as namespace/name, that gets requests for hosts that no object has, and answers for the "
        "custom-http-errors of Ingresses without a default-backend; none by default. It is read from the ConfigMap's "
        "cluster, and has to be there with the ConfigMap.",
    )
    nginx_default_ssl_certificate: str = Field(
        default="",
        description="TLS Secret, as namespace/name, whose certificate is presented for hosts that have none; by "
        "default gateways present their own. It is read from the ConfigMap's cluster, and has to be there with the "
        "ConfigMap.",
    )
    nginx_watch_namespace_selector: str = Field(
        default="",
        description="Labels of namespaces, such as team=shop,tier!=test: Ingresses of other namespaces are not served. "
        "All are by default. The watchers have to read Namespaces for it.",
    )
    nginx_disable_catch_all: bool = Field(
        default=False,
        description="Leave out Ingresses that have a default backend, with their rules; off by default, as in "
        "ingress-nginx.",
    )
    nginx_disable_svc_external_name: bool = Field(
        default=False,
        description="Send no requests to Services of type ExternalName, of whatever object; off by default, as in "
        "ingress-nginx.",
    )
    take_status: bool = Field(
        default=False,
        description="Write addresses to Ingresses whose class is of the controller of ingress-nginx; off by default, "
        "so that an ingress-nginx beside us goes on writing them until it is switched off.",
    )
    nginx_enable_ssl_passthrough: bool = Field(
        default=False,
        description="Follow the annotation ssl-passthrough of ingress-nginx; off by default, as there.",
    )
    host_sharing: HostSharing = Field(
        default="paths",
        description="What other namespaces than its owner's may claim of a host: the default, paths, leaves them the "
        "paths that the owner's routes do not take; namespace leaves them nothing; any, whatever is not claimed yet.",
    )
    consumer_scope: Literal["table", "namespace"] = Field(
        default="table",
        description="Where consumers are recognised: on all routes of the table, as with Apache APISIX, or on those of "
        "their own namespace.",
    )
    global_rule_namespaces: list[str] = Field(
        default=["*"],
        description="Namespaces whose ApisixGlobalRules run for all routes, such as platform or infra-*; by default "
        "all of them, as with Apache APISIX. Rules of others run for routes of their own namespace.",
    )
    publish_addresses: list[str] = Field(
        default=[],
        description="Addresses or host names for the Ingresses' status; by default those that live gateways announce. "
        "Those of a class' GatewayProxy go before.",
    )
    gateway_addresses: list[str] = Field(
        default=[],
        description="Networks and addresses, such as 10.248.0.0/24,fd00:248::/64, of which each Gateway of Gateway API "
        "gets an address of its own; none by default: Gateways share the gateways' addresses.",
    )
    gateway_infrastructure: bool = Field(
        default=False,
        description="Say of GatewayClasses that labels and annotations of spec.infrastructure are honoured, as "
        "watchers with the same setting do by a ServiceAccount for each Gateway; off by default.",
    )
    keep_revisions: int = Field(
        default=100,
        ge=1,
        description="Revisions kept for history and rollback, those that only endpoints led to counted apart; 100 is "
        "some weeks of ordinary changes.",
    )
    keep_days: float = Field(
        default=0.0,
        ge=0,
        le=36_500,
        description="Days after which a revision is dropped however few there are; 0, the default, drops none by age.",
    )
    rollout_shares: list[float] = Field(
        default=[],
        description="Percents of the gateways that take a changed table before all do, step by step, such as 10,50; "
        "none by default: all take it at once.",
    )
    rollout_window_s: float = Field(
        default=60.0,
        ge=1,
        description="Seconds that each step of a rollout lasts; in 60 most services get enough requests to compare.",
    )
    rollout_min_requests: int = Field(
        default=50,
        ge=1,
        description="Requests on either side without which a step is not judged; of fewer than 50, one failure in "
        "twenty is chance.",
    )
    rollout_error_points: float = Field(
        default=1.0,
        gt=0,
        le=100,
        description="Percentage points by which the share of errors may grow; 1 is far above the noise of a service "
        "that works.",
    )
    rollout_latency_factor: float = Field(
        default=1.5,
        ge=1,
        description="Factor by which the 95th percentile of answer times may grow; 1.5 is more than replicas differ.",
    )
    rollout_latency_ms: float = Field(
        default=50.0,
        ge=0,
        description="Milliseconds by which it must have grown besides; fewer than 50 go unnoticed.",
    )
    sealing_public_keys: list[str] = Field(
        default=[],
        description="Public keys of the gateways, to which the keys of ordered certificates are sealed, as for "
        "watchers: in base64, or files that hold one; by default gateway.pub in the data directory.",
    )
    nats_replicas: int = Field(
        default=0,
        ge=0,
        le=5,
        description="NATS servers that keep each stream; 0, the default, is 3 in a cluster of three or more and 1 "
        "elsewhere.",
    )
    sharded: bool = Field(
        default=False,
        description="Lay the table out for gateways that hold a shard of it: they then fetch the chunks of their own "
        "hosts only. Off by default, as without such gateways it is of no use; with them it saves fetching, and either "
        "way they serve the same.",
    )
    debounce_ms: int = Field(
        default=20,
        ge=0,
        description="Least time between two revisions; the first change goes out at once, 20 ms keeps a burst to "
        "fifty revisions a second.",
    )
    forget_clusters: list[str] = Field(
        default=[],
        description="Clusters that are gone for good: when the log was lost, a table is not published before all "
        "clusters of the last one are listed again, except these and those that were removed; none by default.",
    )
    recovery_wait_s: float = Field(
        default=10.0,
        ge=0,
        description="Seconds to wait for further clusters when log and store were both lost while gateways serve; 10 "
        "is what a watcher takes to list a large cluster.",
    )

    @field_validator("table")
    @classmethod
    def _check_table(cls, value: str) -> str:
        return check_table_name(value)

    @field_validator(
        "clusters", "namespaces", "global_rule_namespaces", "traefik_namespaces", "traefik_cross_provider_namespaces"
    )
    @classmethod
    def _check_patterns(cls, values: list[str]) -> list[str]:
        check_patterns(values)
        return values

    @field_validator("publish_addresses")
    @classmethod
    def _check_addresses(cls, values: list[str]) -> list[str]:
        for value in values:
            if not is_address(value):
                raise ValueError(f"{value!r} is neither an IP address nor a DNS name in lower case")
        return values

    @field_validator("gateway_addresses")
    @classmethod
    def _check_pool(cls, values: list[str]) -> list[str]:
        read_pool(values)
        return values

    @field_validator("nginx_annotations_prefix")
    @classmethod
    def _check_prefix(cls, value: str) -> str:
        return check_nginx_prefix(value)

    @field_validator("nginx_watch_namespace_selector", "traefik_label_selector")
    @classmethod
    def _check_selector(cls, value: str) -> str:
        read_selector(value)
        return value

    @field_validator("entrypoints", mode="before")
    @classmethod
    def _split_entry_points(cls, value: Any) -> Any:
        return split_names(value)

    @field_validator("entrypoints")
    @classmethod
    def _check_entry_points(cls, value: dict[str, EntryPointSettings]) -> dict[str, EntryPointSettings]:
        read_entry_points(value)
        return value

    @field_validator("rollout_shares")
    @classmethod
    def _check_shares(cls, values: list[float]) -> list[float]:
        if any(not 0 < value < 100 for value in values) or values != sorted(set(values)):
            raise ValueError(f"{values} are no growing percents between 0 and 100, such as 10,50")
        return values

    @property
    def rollout_policy(self) -> RolloutPolicy:
        """How tables are rolled out."""
        thresholds = Thresholds(
            self.rollout_min_requests, self.rollout_error_points, self.rollout_latency_factor, self.rollout_latency_ms
        )
        return RolloutPolicy(tuple(self.rollout_shares), self.rollout_window_s, thresholds)

    @property
    def translation(self) -> TranslationSettings:
        """What the translation of all objects is given."""
        return TranslationSettings(
            frozenset(self.controller_names),
            frozenset(self.class_names),
            class_by_name=self.class_by_name,
            watch_without_class=self.watch_without_class,
            plugin_names=frozenset(self.plugin_names) | installed_names(),
            ignored_plugins=frozenset(self.ignored_plugins),
            scoped_consumers=self.consumer_scope == "namespace",
            nginx=NginxSettings(
                config_map=self.nginx_configmap,
                tcp_services=self.nginx_tcp_services,
                udp_services=self.nginx_udp_services,
                annotations_prefix=self.nginx_annotations_prefix,
                disable_catch_all=self.nginx_disable_catch_all,
                take_status=self.take_status,
                enable_ssl_passthrough=self.nginx_enable_ssl_passthrough,
                disable_external_names=self.nginx_disable_svc_external_name,
                allow_snippets=self.nginx_allow_snippets,
                default_backend=self.nginx_default_backend_service,
                default_certificate=self.nginx_default_ssl_certificate,
                namespace_selector=self.nginx_watch_namespace_selector,
            ),
            traefik=TraefikSettings(
                ingress_class=self.traefik_ingress_class,
                allow_cross_namespace=self.traefik_allow_cross_namespace,
                cross_provider_namespaces=tuple(self.traefik_cross_provider_namespaces),
                allow_external_names=self.traefik_allow_external_name_services,
                allow_empty_services=self.traefik_allow_empty_services,
                strict_prefix_matching=self.traefik_strict_prefix_matching,
                default_rule_syntax=self.traefik_default_rule_syntax,
                native_lb_by_default=self.traefik_native_lb_by_default,
                namespaces=tuple(self.traefik_namespaces),
                label_selector=self.traefik_label_selector,
            ),
            entry_points=read_entry_points(self.entrypoints),
            gateway_addresses=read_pool(self.gateway_addresses),
            have_infrastructure=self.gateway_infrastructure,
            acme=AcmeNames(self.table, {name: one.challenge for name, one in self.resolvers.items()}),
        )

    @property
    def boundaries(self) -> Boundaries:
        """How far the objects of one namespace reach."""
        return Boundaries(self.host_sharing, tuple(self.global_rule_namespaces))

    @property
    def selection(self) -> Selection:
        """What the table is made of, besides classes."""
        return Selection(clusters=tuple(self.clusters), namespaces=tuple(self.namespaces))

    @property
    def retention(self) -> Retention:
        """How much history is kept."""
        return Retention(self.keep_revisions, timedelta(days=self.keep_days) if self.keep_days else None)

    @property
    def fixed_addresses(self) -> tuple[LoadBalancerAddress, ...]:
        """The addresses that were set by hand."""
        return tuple(map(parse_address, self.publish_addresses))
