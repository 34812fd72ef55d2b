"""Ingress, and the classes that say whose an object is."""

from dataclasses import replace

from headgate.common.resources.kind import Narrowing, OwnershipRule, ResourceKind, StatusShape
from headgate.common.resources.references import CONFIG_MAPS, SECRETS, annotation, nginx_annotation, secret_field

INGRESS_CLASS = ResourceKind(
    "networking.k8s.io", "ingressclasses", "IngressClass", ("v1", "v1beta1"), namespaced=False, is_fetched=True
)
INGRESS = ResourceKind(
    "networking.k8s.io",
    "ingresses",
    "Ingress",
    ("v1", "v1beta1"),
    short_names=("ing",),
    dialect="ingress",
    ownership=OwnershipRule.CLASS,
    narrowed_by=Narrowing.LABELS,
    status=StatusShape.INGRESS,
    is_asked=True,
    references=(
        secret_field("spec.tls.*.secretName"),
        annotation(SECRETS, "headgate.dev/client-auth-secret"),
        *(nginx_annotation(SECRETS, name) for name in ("auth-secret", "auth-tls-secret", "proxy-ssl-secret")),
        *(
            nginx_annotation(CONFIG_MAPS, name)
            for name in ("auth-proxy-set-headers", "custom-headers", "fastcgi-params-configmap")
        ),
    ),
)
LEGACY_INGRESS = replace(INGRESS, group="extensions", versions=("v1beta1",), stands_in_for=INGRESS)

INGRESS_KINDS = (INGRESS_CLASS, INGRESS, LEGACY_INGRESS)
