"""The resources of Traefik, in its group and in the one that it had before version 3.

Definitions that are made of these rows have a status subresource, which Traefik's own lack.
"""

from dataclasses import replace

from headgate.common.resources.kind import OwnershipRule, ResourceKind, StatusShape
from headgate.common.resources.references import CONFIG_MAPS, ReferenceField, secret_field

TRAEFIK_GROUP = "traefik.io"
OLDER_TRAEFIK_GROUP = "traefik.containo.us"


def _row(
    resource: str,
    kind: str,
    *secrets: str,
    ownership: OwnershipRule = OwnershipRule.REFERENCE,
    config_maps: tuple[str, ...] = (),
) -> ResourceKind:
    return ResourceKind(
        TRAEFIK_GROUP,
        resource,
        kind,
        ("v1alpha1",),
        has_whole_group=True,
        has_definition=True,
        dialect="traefik",
        ownership=ownership,
        status=StatusShape.CONDITIONS,
        is_asked=True,
        references=(
            *map(secret_field, secrets),
            *(ReferenceField(CONFIG_MAPS, tuple(path.split("."))) for path in config_maps),
        ),
    )


def _older(kind: ResourceKind) -> ResourceKind:
    return replace(kind, group=OLDER_TRAEFIK_GROUP, has_definition=False)


MIDDLEWARE = _row(
    "middlewares",
    "Middleware",
    "spec.basicAuth.secret",
    "spec.digestAuth.secret",
    "spec.forwardAuth.tls.caSecret",
    "spec.forwardAuth.tls.certSecret",
    "spec.rateLimit.redis.secret",
    "spec.rateLimit.redis.tls.caSecret",
    "spec.rateLimit.redis.tls.certSecret",
)
MIDDLEWARE_TCP = _row("middlewaretcps", "MiddlewareTCP")
SERVERS_TRANSPORT = _row(
    "serverstransports",
    "ServersTransport",
    "spec.rootCAs.*.secret",
    "spec.rootCAsSecrets.*",
    "spec.certificatesSecrets.*",
    config_maps=("spec.rootCAs.*.configMap",),
)
SERVERS_TRANSPORT_TCP = _row(
    "serverstransporttcps",
    "ServersTransportTCP",
    "spec.tls.rootCAs.*.secret",
    "spec.tls.rootCAsSecrets.*",
    "spec.tls.certificatesSecrets.*",
    config_maps=("spec.tls.rootCAs.*.configMap",),
)
TLS_OPTION = _row("tlsoptions", "TLSOption", "spec.clientAuth.secretNames.*")
TLS_STORE = _row("tlsstores", "TLSStore", "spec.defaultCertificate.secretName", "spec.certificates.*.secretName")
TRAEFIK_SERVICE = _row("traefikservices", "TraefikService")
INGRESS_ROUTE = _row("ingressroutes", "IngressRoute", "spec.tls.secretName", ownership=OwnershipRule.ANNOTATION)
INGRESS_ROUTE_TCP = _row(
    "ingressroutetcps", "IngressRouteTCP", "spec.tls.secretName", ownership=OwnershipRule.ANNOTATION
)
INGRESS_ROUTE_UDP = _row("ingressrouteudps", "IngressRouteUDP", ownership=OwnershipRule.ANNOTATION)

TRAEFIK_KINDS = (
    MIDDLEWARE,
    MIDDLEWARE_TCP,
    SERVERS_TRANSPORT,
    SERVERS_TRANSPORT_TCP,
    TLS_OPTION,
    TLS_STORE,
    TRAEFIK_SERVICE,
    INGRESS_ROUTE,
    INGRESS_ROUTE_TCP,
    INGRESS_ROUTE_UDP,
)
"""What others refer to comes first."""
OLDER_TRAEFIK_KINDS = tuple(map(_older, TRAEFIK_KINDS))
"""The same in the older group, whose definitions are no longer made. A cluster may have objects in both; one that is
in both under the same name counts in the newer."""
