"""Settings of the watcher."""

import re
from ipaddress import ip_address
from pathlib import Path
from typing import Literal, Self

from pydantic import Field, field_validator, model_validator

from headgate.common.clusters import check_cluster_name
from headgate.common.leadership.settings import LeaseSettings
from headgate.common.resources.references import NGINX_PREFIX, check_nginx_prefix
from headgate.common.selection import check_table_name
from headgate.common.table import DEFAULT_TABLE

_NAMESPACE = re.compile(r"[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?")

_OBJECT = re.compile(r"[a-z0-9](?:[-a-z0-9.]*[a-z0-9])?")

_NAME = r"[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?"
_KEY = rf"(?:[a-z0-9][-a-z0-9.]{{0,252}}/)?{_NAME}"
_VALUES = rf"\(\s*(?:{_NAME})?(?:\s*,\s*(?:{_NAME})?)*\s*\)"
_REQUIREMENT = (
    rf"\s*(?:!\s*{_KEY}|{_KEY}(?:\s*(?:==?|!=)\s*(?:{_NAME})?|\s*[<>]\s*[0-9]+|\s+(?:in|notin)\s*{_VALUES})?)\s*"
)
_SELECTOR = re.compile(rf"{_REQUIREMENT}(?:,{_REQUIREMENT})*")
"""Label selectors, as `labels.Parse` of k8s.io/apimachinery takes them."""


class WatcherSettings(LeaseSettings):
    """What a watcher can be told. Watchers of manifests need no lease: there is one for each folder."""

    cluster: str = Field(
        default="local", description="Name that the cluster has in routes, revisions and metrics; local by default."
    )
    manifests: list[Path] = Field(
        default=[],
        description="Folders and files of manifests to follow instead of a cluster; none by default: an API server is "
        "read.",
    )
    kubeconfig: Path | None = Field(
        default=None,
        description="File that names the API server; by default KUBECONFIG, the pod's service account, or "
        "~/.kube/config.",
    )
    context: str = Field(default="", description="Context of the kubeconfig; its current one by default.")
    namespaces: list[str] = Field(
        default=[], description="Read these namespaces only, so that Roles are enough; all by default."
    )
    watch_cluster_scoped: bool = Field(
        default=True,
        description="Read what has no namespace, as IngressClasses, which takes a ClusterRole; on by default. Off, "
        "with namespaces, nothing is asked for that a Role cannot permit, and classes are known by name only.",
    )
    ingress_selector: str = Field(
        default="", description="Label selector for Ingresses, as kubectl takes it; all by default."
    )
    watch_secrets: Literal["tls", "referenced", "all"] = Field(
        default="referenced",
        description="Secrets that are read from a cluster: those of type kubernetes.io/tls (tls), also those that "
        "an object names, as in auth-secret or secretRef (referenced, the default, as controllers before us do), or "
        "all that people write. All are sealed.",
    )
    watch_pods: bool = Field(
        default=False,
        description="Read the labels of Pods, which subsets of an ApisixUpstream need; off by default, as a cluster "
        "has many.",
    )
    watch_config_maps: list[str] = Field(
        default=["ingress-nginx/ingress-nginx-controller", "ingress-nginx/tcp-services", "ingress-nginx/udp-services"],
        description="ConfigMaps that are read, as namespace/name: by default those of ingress-nginx.",
    )
    watch_referenced_config_maps: bool = Field(
        default=True,
        description="Read the ConfigMaps too that objects name, as in custom-headers; on by default. It takes the "
        "right to list and watch ConfigMaps, and without that right it must be off.",
    )
    gateway_infrastructure: bool = Field(
        default=False,
        description="Make a ServiceAccount for each Gateway of Gateway API, with the labels and annotations of its "
        "spec.infrastructure; off by default, as it takes the right to create and patch ServiceAccounts. The "
        "translator's has to be the same.",
    )
    nginx_annotations_prefix: str = Field(
        default=NGINX_PREFIX,
        description="Prefix of the annotations of ingress-nginx that name Secrets and ConfigMaps; the translator's has "
        "to be the same. nginx.ingress.kubernetes.io by default.",
    )
    sealing_public_keys: list[str] = Field(
        default=[],
        description="Public keys of the gateways, to which Secrets are sealed: in base64, or files that hold one and "
        "are waited for; by default gateway.pub in the data directory.",
    )

    lease_name: str = Field(
        default="",
        max_length=253,
        description="Name of the Lease that decides which of a cluster's watchers works; headgate-watcher- and the "
        "cluster's name by default.",
    )
    lease_namespace: str = Field(
        default="",
        description="Namespace of that Lease; by default the pod's own, outside of a cluster the first of namespaces, "
        "or default.",
    )
    lease_duration_s: float = Field(
        default=6.0,
        ge=1,
        description="Seconds for which the Lease must stand unchanged before another watcher takes it, rounded up; 6 "
        "keeps endpoints from growing old and the API server from having much to do.",
    )
    lease_renew_deadline_s: float = Field(
        default=4.0,
        gt=0,
        description="Seconds without a renewal after which a watcher stops working; 4 is three attempts.",
    )
    lease_retry_s: float = Field(
        default=1.0, gt=0, description="Seconds between two attempts to take or renew the Lease; 1 by default."
    )

    admission_port: int = Field(
        default=0, ge=0, le=65535, description="Port of the validating webhook; 0, the default, turns it off."
    )
    admission_host: str = Field(
        default="", description="Address of the webhook; all by default, as the API server comes from elsewhere."
    )
    admission_secret: str = Field(
        default="",
        max_length=253,
        description="Secret in the watcher's own namespace (that of the Lease) in which the pair keeps the webhook's "
        "certificate, made and renewed by itself; none by default: the certificate is in files.",
    )
    admission_webhook: str = Field(
        default="",
        max_length=253,
        description="ValidatingWebhookConfiguration into which the authority of that certificate is written.",
    )
    admission_names: list[str] = Field(
        default=[],
        description="DNS names or addresses by which API servers reach the webhook, for that certificate: "
        "SERVICE.NAMESPACE.svc.",
    )
    admission_certificate_days: float = Field(
        default=90.0,
        ge=0.001,
        le=825,
        description="Days that such a certificate is valid; 90, as those of public authorities. It is renewed when a "
        "third is left.",
    )
    admission_certificate_file: Path | None = Field(
        default=None, description="The webhook's certificate with its chain, PEM; read again when it changes."
    )
    admission_key_file: Path | None = Field(default=None, description="Key of that certificate, PEM.")
    admission_client_ca_file: Path | None = Field(
        default=None,
        description="Authorities, PEM: only clients with a certificate of them are answered; by default all clients "
        "are, as API servers show no certificate unless they are configured to.",
    )
    admission_deadline_s: float = Field(
        default=2.0,
        gt=0,
        le=30,
        description="Seconds to wait for a translator; 2 by default, a hundred times what an answer takes.",
    )
    admission_tables: list[str] = Field(
        default=[DEFAULT_TABLE],
        min_length=1,
        description="Tables whose translators are asked; the one named default by default.",
    )
    admission_failure_policy: Literal["ignore", "fail"] = Field(
        default="ignore",
        description="Whether objects that no translator could judge are let in (ignore, the default, so that work "
        "goes on) or refused (fail).",
    )
    admission_missing_references: Literal["warn", "deny"] = Field(
        default="warn",
        description="Whether an object that refers to a Service or Secret which is not there is let in with a warning "
        "(the default: it often comes a moment later) or refused (deny).",
    )

    @field_validator("cluster")
    @classmethod
    def _check_cluster(cls, value: str) -> str:
        return check_cluster_name(value)

    @field_validator("lease_namespace")
    @classmethod
    def _check_lease_namespace(cls, value: str) -> str:
        if value and not _NAMESPACE.fullmatch(value):
            raise ValueError("must be a namespace's name")
        return value

    @field_validator("lease_name", "admission_secret", "admission_webhook")
    @classmethod
    def _check_object_name(cls, value: str) -> str:
        if value and not _OBJECT.fullmatch(value):
            raise ValueError("must be an object's name: lower-case letters, digits, - and .")
        return value

    @field_validator("namespaces")
    @classmethod
    def _check_namespaces(cls, values: list[str]) -> list[str]:
        for value in values:
            if not _NAMESPACE.fullmatch(value):
                raise ValueError(f"{value!r} is not a namespace's name; several are separated by commas: shop,blog")
        return values

    @field_validator("admission_tables")
    @classmethod
    def _check_admission_tables(cls, values: list[str]) -> list[str]:
        return [*dict.fromkeys(map(check_table_name, values))]

    @field_validator("admission_names")
    @classmethod
    def _check_admission_names(cls, values: list[str]) -> list[str]:
        for value in values:
            if not (_OBJECT.fullmatch(value) or _as_address(value)):
                raise ValueError(
                    f"{value!r} must be a DNS name, such as headgate-admission.headgate.svc, or an address"
                )
        return [*dict.fromkeys(values)]

    @field_validator("nginx_annotations_prefix")
    @classmethod
    def _check_prefix(cls, value: str) -> str:
        return check_nginx_prefix(value)

    @field_validator("ingress_selector")
    @classmethod
    def _check_ingress_selector(cls, value: str) -> str:
        if value and not _SELECTOR.fullmatch(value):
            raise ValueError("must be a label selector, such as team=web or team in (web, shop),!internal")
        return value

    @model_validator(mode="after")
    def _check_source(self) -> Self:
        for name in ("kubeconfig", "context", "namespaces", "ingress_selector", "admission_port"):
            if self.manifests and getattr(self, name):
                raise ValueError(f"manifests and {name} exclude each other: one watcher reads one source")
        return self

    @model_validator(mode="after")
    def _check_scope(self) -> Self:
        if not (self.watch_cluster_scoped or self.namespaces or self.manifests):
            raise ValueError("watch_cluster_scoped is off: give namespaces, or all of the cluster is listed")
        return self

    @model_validator(mode="after")
    def _check_admission(self) -> Self:
        files, kept = self.admission_certificate_file and self.admission_key_file, self.admission_secret
        if kept and (self.admission_certificate_file or self.admission_key_file):
            raise ValueError("admission_secret and admission_certificate_file exclude each other: give one certificate")
        if kept and not (self.admission_webhook and self.admission_names):
            raise ValueError(
                "admission_secret needs admission_webhook, whose caBundle is written, and admission_names, which the "
                "certificate is for"
            )
        if self.admission_port and not (files or kept):
            raise ValueError(
                "admission_port needs admission_secret, for a certificate that is made and renewed, or "
                "admission_certificate_file and admission_key_file: API servers use TLS"
            )
        return self


def _as_address(text: str) -> str:
    """Return an address as certificates have it; empty for what is none."""
    try:
        return str(ip_address(text))
    except ValueError:
        return ""
