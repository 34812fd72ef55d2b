"""Annotations of ingress-nginx about who may come in: addresses, authentication, client certificates."""

from headgate.translator.annotations.nginx import values
from headgate.translator.annotations.nginx.row import NginxAnnotation, Risk

_NOT_YET = "it is not followed yet"


def _unread(text: str) -> str:
    return text


def _refused(name: str, risk: Risk = Risk.LOW, *, guards: bool = True, example: str = "x") -> NginxAnnotation:
    return NginxAnnotation(
        name=name, read=_unread, value="text", example=example, refused=_NOT_YET, guards=guards, risk=risk
    )


NETWORKS = (
    *(
        NginxAnnotation(
            name=name,
            sets="networks.allowed",
            read=values.networks,
            value="networks, separated by commas",
            does=does,
            example="10.0.0.0/8,192.0.2.7",
            guards=True,
            risk=Risk.MEDIUM,
        )
        for name, does in (
            ("whitelist-source-range", "The older name of `allowlist-source-range`."),
            ("allowlist-source-range", "Only clients of these may come; others get a 403."),
        )
    ),
    NginxAnnotation(
        name="denylist-source-range",
        sets="networks.denied",
        read=values.networks,
        value="networks, separated by commas",
        does="Clients of these get a 403, whatever the list above says.",
        example="198.51.100.0/24",
        guards=True,
        risk=Risk.MEDIUM,
    ),
)
AUTHENTICATION = (
    _refused("auth-type"),
    _refused("auth-secret", Risk.MEDIUM),
    _refused("auth-secret-type", guards=False),
    _refused("auth-realm", Risk.MEDIUM, guards=False),
    _refused("auth-url", Risk.HIGH),
    _refused("auth-signin", Risk.HIGH, guards=False),
    _refused("auth-signin-redirect-param", Risk.MEDIUM, guards=False),
    _refused("auth-method", guards=False),
    _refused("auth-response-headers", Risk.MEDIUM, guards=False),
    _refused("auth-proxy-set-headers", Risk.MEDIUM, guards=False),
    _refused("auth-request-redirect", Risk.MEDIUM, guards=False),
    _refused("auth-cache-key", Risk.MEDIUM, guards=False),
    _refused("auth-cache-duration", Risk.MEDIUM, guards=False),
    _refused("auth-keepalive", guards=False),
    _refused("auth-keepalive-share-vars", guards=False),
    _refused("auth-keepalive-requests", guards=False),
    _refused("auth-keepalive-timeout", guards=False),
    _refused("auth-always-set-cookie", guards=False),
    _refused("enable-global-auth", guards=False),
    _refused("satisfy"),
)
CLIENT_TLS = (
    _refused("auth-tls-secret", Risk.MEDIUM),
    _refused("auth-tls-verify-client", Risk.MEDIUM),
    _refused("auth-tls-verify-depth"),
    _refused("auth-tls-match-cn", Risk.HIGH),
    _refused("auth-tls-error-page", Risk.HIGH, guards=False),
    _refused("auth-tls-pass-certificate-to-upstream", guards=False),
    _refused("ssl-ciphers", guards=False),
    _refused("ssl-prefer-server-ciphers", guards=False),
    _refused("ssl-passthrough", guards=False),
)
ERRORS = (
    _refused("default-backend", guards=False),
    _refused("custom-http-errors", guards=False),
    _refused("disable-proxy-intercept-errors", guards=False),
    _refused("proxy-redirect-from", Risk.MEDIUM, guards=False),
    _refused("proxy-redirect-to", Risk.MEDIUM, guards=False),
    _refused("proxy-cookie-domain", Risk.MEDIUM, guards=False),
    _refused("proxy-cookie-path", Risk.MEDIUM, guards=False),
)
