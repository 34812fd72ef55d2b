"""Kinds that every dialect looks up: Services, their endpoints, Secrets, Namespaces."""

from headgate.common.resources.kind import Narrowing, ResourceKind, Sealing, StatusShape, WatchMode
from headgate.common.resources.references import CONFIG_MAPS, ReferenceField

NAMESPACE = ResourceKind("", "namespaces", "Namespace", ("v1",), namespaced=False, has_label_name=True)
SECRET = ResourceKind(
    "",
    "secrets",
    "Secret",
    ("v1",),
    narrowed_by=Narrowing.SECRET_TYPES,
    sealing=Sealing.SECRET,
    is_asked=True,
)
SERVICE = ResourceKind(
    "",
    "services",
    "Service",
    ("v1",),
    short_names=("svc",),
    has_label_name=True,
    dialect="services",
    keeps_status=True,
    status=StatusShape.PREFIXED_CONDITIONS,
    is_asked=True,
)
CONFIG_MAP = ResourceKind(
    "",
    "configmaps",
    "ConfigMap",
    ("v1",),
    short_names=("cm",),
    dialect="ingress",
    watch=WatchMode.NAMED,
    references=(
        ReferenceField(CONFIG_MAPS, ("data", "add-headers")),
        ReferenceField(CONFIG_MAPS, ("data", "proxy-set-headers")),
    ),
)
"""Read for the options of ingress-nginx, its TCP and UDP services, and the headers that options and Ingresses name."""
SERVICE_EXPORT = ResourceKind(
    "multicluster.x-k8s.io",
    "serviceexports",
    "ServiceExport",
    ("v1beta1", "v1alpha1"),
    dialect="multicluster",
    is_for_tenants=False,
    status=StatusShape.EXPORT,
)
SERVICE_IMPORT = ResourceKind(
    "multicluster.x-k8s.io", "serviceimports", "ServiceImport", ("v1beta1", "v1alpha1"), short_names=("svcim",)
)
ENDPOINT_SLICE = ResourceKind("discovery.k8s.io", "endpointslices", "EndpointSlice", ("v1", "v1beta1"))
ENDPOINTS = ResourceKind("", "endpoints", "Endpoints", ("v1",), stands_in_for=ENDPOINT_SLICE)
POD = ResourceKind("", "pods", "Pod", ("v1",), watch=WatchMode.PODS, keeps_labels_only=True)
BUNDLE_VERSION = "gateway.networking.k8s.io/bundle-version"
"""Annotation of Gateway API's definitions: the version that they are of, such as `v1.6.1`."""
DEFINITION = ResourceKind(
    "apiextensions.k8s.io",
    "customresourcedefinitions",
    "CustomResourceDefinition",
    ("v1",),
    namespaced=False,
    short_names=("crd", "crds"),
    names=("gatewayclasses.gateway.networking.k8s.io",),
    kept_annotations=(BUNDLE_VERSION,),
)
"""That of GatewayClasses alone, for its version."""

CORE_KINDS = (
    NAMESPACE,
    SECRET,
    CONFIG_MAP,
    SERVICE,
    SERVICE_EXPORT,
    SERVICE_IMPORT,
    ENDPOINT_SLICE,
    ENDPOINTS,
    POD,
    DEFINITION,
)
