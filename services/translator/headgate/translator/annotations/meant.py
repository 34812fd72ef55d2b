"""Names from elsewhere that people give to annotations which keep requests out: ignored, they would let them in."""

from collections.abc import Mapping
from typing import Final, NamedTuple

from headgate.common.plugins.catalogue import CONFIGS
from headgate.translator.annotations.annotation import PREFIX
from headgate.translator.annotations.nginx import NGINX_PREFIX, NGINX_TABLE

_NETWORKS: Final = frozenset(
    (
        "allow-cidrs",
        "allow-ips",
        "allow-list",
        "allow-networks",
        "allow-source-range",
        "allow-source-ranges",
        "allowed-cidrs",
        "allowed-ips",
        "allowed-networks",
        "allowlist",
        "allowlist-source-range",
        "client-cidrs",
        "client-ips",
        "ip-allow-list",
        "ip-allowlist",
        "ip-white-list",
        "ip-whitelist",
        "source-range",
        "source-ranges",
        "white-list",
        "whitelist",
        "whitelist-source-range",
    )
)
_PLUGINS: Final[Mapping[str, str]] = {
    **dict.fromkeys(
        (
            "blacklist",
            "blacklist-source-range",
            "blocklist",
            "blocklist-source-range",
            "deny-list",
            "denylist",
            "denylist-source-range",
            "ip-denylist",
        ),
        "ip-restriction",
    ),
    **dict.fromkeys(("auth-url", "auth-uri", "auth-signin", "external-auth"), "forward-auth"),
    **dict.fromkeys(("auth-type", "auth-secret", "auth-secret-type", "auth-realm", "basic-auth"), "basic-auth"),
    **dict.fromkeys(("rate-limit", "limit-rps", "limit-rpm"), "limit-req"),
    "limit-connections": "limit-conn",
    "block-methods": "fault-injection",
    "http-block-methods": "fault-injection",
    "http-allow-methods": "fault-injection",
    "enable-csrf": "csrf",
    "csrf-key": "csrf",
}
_CLIENT_AUTH: Final[Mapping[str, str]] = {
    "auth-tls-secret": "client-auth-secret",
    "auth-tls-verify-client": "client-auth",
    "auth-tls-verify-depth": "client-auth-depth",
}


class Meant(NamedTuple):
    """What a name from elsewhere stands for here."""

    annotation: str
    """Without our prefix."""
    instead: str
    """What to write."""


def meant_guard(kind: str, name: str) -> Meant | None:
    """Return what the author of an unknown annotation with our prefix wants to keep requests out with, if anything."""
    if name in _NETWORKS:
        annotation = "client-networks" if kind == "Ingress" else "stream-client-networks"
        return Meant(annotation, f"{PREFIX}{annotation}")
    if kind != "Ingress":
        return None
    if name in _CLIENT_AUTH:
        return Meant(_CLIENT_AUTH[name], f"{PREFIX}{_CLIENT_AUTH[name]}")
    plugin = _PLUGINS.get(name) or (name if name in CONFIGS else None)
    if plugin is not None:
        return Meant("plugins", f"plugin {plugin} in {PREFIX}plugins")
    row = NGINX_TABLE.rows.get(name)
    return Meant("plugins", f"{NGINX_PREFIX}{name}") if row is not None and row.guards else None
