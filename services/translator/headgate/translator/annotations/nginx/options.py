"""The keys of ingress-nginx' ConfigMap, each with what becomes of it.

A key that is an annotation too has the annotation's row: its value holds for Ingresses that do not say it themselves.
"""

from dataclasses import replace
from typing import Final

from headgate.translator.annotations.annotation import AnnotationTable
from headgate.translator.annotations.nginx import NGINX_TABLE, values
from headgate.translator.annotations.nginx.client_options import CLIENTS
from headgate.translator.annotations.nginx.followed_options import FOLLOWED
from headgate.translator.annotations.nginx.other_options import IGNORED, REFUSED
from headgate.translator.annotations.nginx.row import NginxAnnotation


def _unread(text: str) -> str:
    return text


_SHARED: Final = (
    "proxy-body-size",
    "proxy-connect-timeout",
    "proxy-read-timeout",
    "proxy-send-timeout",
    "proxy-next-upstream",
    "proxy-next-upstream-timeout",
    "proxy-next-upstream-tries",
    "proxy-request-buffering",
    "proxy-buffering",
    "proxy-buffer-size",
    "proxy-buffers-number",
    "proxy-busy-buffers-size",
    "proxy-http-version",
    "proxy-max-temp-file-size",
    "client-body-buffer-size",
    "ssl-redirect",
    "force-ssl-redirect",
    "preserve-trailing-slash",
    "relative-redirects",
    "denylist-source-range",
    "whitelist-source-range",
    "limit-rate",
    "limit-rate-after",
    "load-balance",
    "upstream-hash-by",
    "service-upstream",
    "enable-opentelemetry",
    "opentelemetry-trust-incoming-span",
    "opentelemetry-operation-name",
    "custom-http-errors",
    "proxy-redirect-from",
    "proxy-redirect-to",
    "proxy-cookie-domain",
    "proxy-cookie-path",
)
_GLOBAL_AUTH: Final = (
    "url",
    "method",
    "signin",
    "signin-redirect-param",
    "response-headers",
    "request-redirect",
    "cache-key",
    "cache-duration",
    "always-set-cookie",
)


def _global_auth(name: str) -> NginxAnnotation:
    """Return the row of a key that says of all Ingresses what an annotation says of one."""
    row = NGINX_TABLE.rows[f"auth-{name}"]
    assert isinstance(row, NginxAnnotation)
    read = values.service_url if name == "url" else row.read
    sets = f"global_{row.sets}"
    return replace(row, name=f"global-auth-{name}", sets=sets, read=read, guards=row.guards, drops=False)


def _rows() -> tuple[NginxAnnotation, ...]:
    shared = tuple(row for name in _SHARED if isinstance(row := NGINX_TABLE.rows[name], NginxAnnotation))
    refused = tuple(
        NginxAnnotation(name=name, read=_unread, value="", example="x", refused=why, guards=guards)
        for name, why, guards in REFUSED
    )
    ignored = tuple(
        NginxAnnotation(name=name, read=_unread, value="", example="x", ignored=why) for name, why in IGNORED.items()
    )
    return (*shared, *map(_global_auth, _GLOBAL_AUTH), *FOLLOWED, *CLIENTS, *refused, *ignored)


class OptionTable(AnnotationTable):
    """The keys of a ConfigMap."""

    def field(self, name: str) -> str:
        """Return the field path of a key."""
        return f"data[{name}]"


OPTION_ROWS: Final = _rows()
OPTIONS: Final = OptionTable("", {row.name: row for row in OPTION_ROWS})
