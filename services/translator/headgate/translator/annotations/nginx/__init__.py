"""The `nginx.ingress.kubernetes.io/*` annotations of ingress-nginx 1.15, all in one table."""

from typing import Final

from headgate.translator.annotations.annotation import AnnotationTable
from headgate.translator.annotations.nginx.access import AUTHENTICATION, CLIENT_TLS, ERRORS, NETWORKS
from headgate.translator.annotations.nginx.balancing import BALANCING, CANARY
from headgate.translator.annotations.nginx.limits import CORS, LIMITS
from headgate.translator.annotations.nginx.observing import OBSERVING, REMOVED, SNIPPETS
from headgate.translator.annotations.nginx.proxying import PROXYING, UPSTREAM_TLS
from headgate.translator.annotations.nginx.routing import ROUTING
from headgate.translator.annotations.nginx.row import NGINX_PREFIX, NginxAnnotation, Risk

__all__ = ["NGINX_PREFIX", "NGINX_ROWS", "NGINX_TABLE", "SECTIONS", "NginxAnnotation", "Risk"]

SECTIONS: Final[dict[str, tuple[NginxAnnotation, ...]]] = {
    "Paths, rewrites, redirects, hosts": ROUTING,
    "Upstreams": PROXYING,
    "TLS towards upstreams": UPSTREAM_TLS,
    "Errors, redirects and cookies of answers": ERRORS,
    "Addresses of clients": NETWORKS,
    "Authentication": AUTHENTICATION,
    "TLS of clients": CLIENT_TLS,
    "Limits": LIMITS,
    "Cross-origin requests": CORS,
    "Balancing and sessions": BALANCING,
    "Canaries": CANARY,
    "Logs and traces": OBSERVING,
    "Configuration of nginx": SNIPPETS,
    "Removed before the last release": REMOVED,
}
"""The rows by topic, as the documentation has them."""
NGINX_ROWS: Final = tuple(row for rows in SECTIONS.values() for row in rows)
NGINX_TABLE: Final = AnnotationTable.of(NGINX_PREFIX, NGINX_ROWS)
