"""Authorities of a BackendTLSPolicy: certificates in ConfigMaps of its namespace, or those of the system."""

from typing import Final, NamedTuple

from headgate.common.problems import Problem
from headgate.common.resources import CONFIG_MAP
from headgate.translator.dialects.gateway_api.models.policy import BackendTlsValidation, LocalReference
from headgate.translator.manifests import texts
from headgate.translator.manifests.specs import refuse
from headgate.translator.sources.config_maps import CONFIG_MAPS
from headgate.translator.world.graph import Lookups

INVALID_REFERENCE: Final = "InvalidCACertificateRef"
INVALID_KIND: Final = "InvalidKind"
_KEY: Final = "ca.crt"


class Authorities(NamedTuple):
    """Who may have signed the certificate of a Service."""

    pem: str
    """Empty: those of the system."""
    is_known: bool
    """Whether there is one at all."""


def find_authorities(
    written: BackendTlsValidation, field: str, namespace: str, lookups: Lookups, problems: list[Problem]
) -> Authorities:
    """Return the authorities of a policy; what cannot be had goes to `problems`."""
    if not written.ca_certificate_refs:
        return Authorities("", is_known=True)
    read = [
        _read(each, f"{field}.caCertificateRefs[{index}]", namespace, lookups, problems)
        for index, each in enumerate(written.ca_certificate_refs)
    ]
    found = [pem for pem in read if pem]
    return Authorities("".join(dict.fromkeys(found)), is_known=bool(found))


def _read(written: LocalReference, field: str, namespace: str, lookups: Lookups, problems: list[Problem]) -> str:
    if (written.group, written.kind) != (CONFIG_MAP.group, CONFIG_MAP.kind):
        what = f"{written.kind}.{written.group}" if written.group else written.kind
        problems.append(refuse(INVALID_KIND, f"{field}.kind", "must be a ConfigMap of the core group", what))
        return ""
    what = f"ConfigMap {namespace}/{written.name}"
    config_map = lookups.get(CONFIG_MAPS, namespace, written.name)
    if config_map is None:
        message = f"{what} not found, or the watcher does not read it (HEADGATE_WATCH_REFERENCED_CONFIG_MAPS)"
        problems.append(refuse(INVALID_REFERENCE, f"{field}.name", message, written.name))
        return ""
    try:
        return texts.certificates(config_map.as_dict().get(_KEY, ""))
    except ValueError as error:
        message = f"{what}: {_KEY} {error}"
        problems.append(refuse(INVALID_REFERENCE, f"{field}.name", message, written.name))
        return ""
