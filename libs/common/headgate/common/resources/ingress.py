"""Ingress, and the classes that say whose an object is."""

from dataclasses import replace

from headgate.common.resources.kind import Narrowing, OwnershipRule, ResourceKind, StatusShape

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
)
LEGACY_INGRESS = replace(INGRESS, group="extensions", versions=("v1beta1",), stands_in_for=INGRESS)

INGRESS_KINDS = (INGRESS_CLASS, INGRESS, LEGACY_INGRESS)
