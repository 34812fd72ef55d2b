"""Certificates that clients of HTTPS listeners have to show: `tls.frontend` of a Gateway, by default and for ports.

It holds for the listeners of the Gateway's ListenerSets too. A listener none of whose authorities can be had is not
accepted: without them all clients would be let in.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

from headgate.common.problems import Problem
from headgate.common.resources import CONFIG_MAP, GATEWAY, GATEWAY_GROUP
from headgate.common.table import ClientAuth, TlsPolicy
from headgate.translator.dialects.gateway_api.models.frontend import FrontendValidation, GatewayFrontend
from headgate.translator.dialects.gateway_api.models.gateway import SecretReference
from headgate.translator.manifests import texts
from headgate.translator.manifests.reading import as_object
from headgate.translator.manifests.specs import read_part, refuse
from headgate.translator.sources.config_maps import CONFIG_MAPS
from headgate.translator.sources.gateways import GatewayName, Party, find_our_gateway, is_granted
from headgate.translator.world.graph import Level, Lookups, Rule

FIELD: Final = "spec.tls.frontend"
NO_AUTHORITY: Final = "NoValidCACertificate"
_KEY: Final = "ca.crt"
_DEPTH: Final = 4
"""Certificates between a client's and its authority's."""


class ClientValidation(NamedTuple):
    """What is asked of the clients of some listeners."""

    policy: TlsPolicy | None
    """None: it cannot be followed."""
    problems: tuple[Problem, ...] = ()
    """References that are in vain."""
    is_insecure: bool = False
    """Clients are let in whatever they show."""


class Frontend(NamedTuple):
    """What is asked of the clients of a Gateway."""

    default: ClientValidation | None = None
    """None: nothing."""
    per_port: Mapping[int, ClientValidation | None] = MappingProxyType({})

    def at(self, port: int) -> ClientValidation | None:
        """Return what is asked of clients of a port's HTTPS listeners; None: nothing."""
        return self.per_port.get(port, self.default)

    @property
    def is_insecure(self) -> bool:
        """Whether clients are let in somewhere whatever they show."""
        return any(each is not None and each.is_insecure for each in (self.default, *self.per_port.values()))


NOTHING_ASKED: Final = Frontend()


def fault_of_frontend(tls: object, *, has_own_addresses: bool) -> Problem | None:
    """Return why a Gateway's `spec.tls.frontend` cannot be followed at all; None if it can."""
    written = as_object(tls).get("frontend")
    if not written:
        return None
    if not has_own_addresses:
        message = (
            "certificates of clients are asked for at addresses of the Gateway's own alone, which the operator's "
            "setting HEADGATE_GATEWAY_ADDRESSES gives it: others have the gateways' HTTPS port too"
        )
        return refuse("UnsupportedValue", FIELD, message)
    problems: list[Problem] = []
    if read_part(GatewayFrontend, written, FIELD, problems) is not None:
        return None
    wrong = problems[0]
    return refuse("UnsupportedValue", wrong.field, wrong.message, wrong.value)


def read_frontend(tls: object, namespace: str, lookups: Lookups) -> Frontend:
    """Return what a Gateway in a namespace asks of clients in `spec.tls`, which has no fault."""
    written = as_object(tls).get("frontend")
    part = read_part(GatewayFrontend, written, FIELD, []) if written else None
    if part is None:
        return NOTHING_ASKED
    found = part.value
    per_port = {
        each.port: _validation(each.tls.validation, f"{FIELD}.perPort[{index}].tls.validation", namespace, lookups)
        for index, each in enumerate(found.per_port)
    }
    return Frontend(_validation(found.default.validation, f"{FIELD}.default.validation", namespace, lookups), per_port)


def _validation(
    written: FrontendValidation | None, field: str, namespace: str, lookups: Lookups
) -> ClientValidation | None:
    if written is None:
        return None
    problems: list[Problem] = []
    read = [
        _read(each, f"{field}.caCertificateRefs[{index}]", namespace, lookups, problems)
        for index, each in enumerate(written.ca_certificate_refs)
    ]
    pem = "".join(dict.fromkeys(filter(None, read)))
    if not pem:
        return ClientValidation(None, tuple(problems))
    is_insecure = written.mode == "AllowInsecureFallback"
    auth = ClientAuth(mode="optional-any" if is_insecure else "required", ca_pem=pem, depth=_DEPTH)
    return ClientValidation(TlsPolicy(client_auth=auth), tuple(problems), is_insecure)


def _read(written: SecretReference, field: str, own: str, lookups: Lookups, problems: list[Problem]) -> str:
    if (written.group, written.kind) != (CONFIG_MAP.group, CONFIG_MAP.kind):
        what = f"{written.kind}.{written.group}" if written.group else written.kind
        problems.append(
            refuse("InvalidCACertificateKind", f"{field}.kind", "must be a ConfigMap of the core group", what)
        )
        return ""
    namespace = written.namespace or own
    what = f"ConfigMap {namespace}/{written.name}"
    source = Party(GATEWAY_GROUP, GATEWAY.kind, own)
    target = Party(CONFIG_MAP.group, CONFIG_MAP.kind, written.name)
    if namespace != own and not is_granted(lookups, source, target, namespace):
        message = f"{what}: no ReferenceGrant there allows Gateways of namespace {own}"
        problems.append(refuse("RefNotPermitted", f"{field}.namespace", message, namespace))
        return ""
    found = lookups.get(CONFIG_MAPS, namespace, written.name)
    if found is None:
        message = f"{what} not found, or the watcher does not read it (HEADGATE_WATCH_REFERENCED_CONFIG_MAPS)"
    else:
        try:
            return texts.certificates(found.as_dict().get(_KEY, ""))
        except ValueError as error:
            message = f"{what}: {_KEY} {error}"
    problems.append(refuse("InvalidCACertificateRef", f"{field}.name", message, written.name))
    return ""


class _Question(NamedTuple):
    cluster: str
    namespace: str
    name: str


def read_frontend_of(lookups: Lookups, gateway: GatewayName) -> Frontend:
    """Return what a Gateway of ours asks of clients."""
    document = find_our_gateway(lookups, *gateway)
    if document is None:
        return NOTHING_ASKED
    return read_frontend(as_object(document.decode().get("spec")).get("tls"), gateway.namespace, lookups)


def _find(lookups: Lookups, question: _Question) -> Frontend:
    return read_frontend_of(lookups, GatewayName(question.namespace, question.name))


_FRONTEND: Rule[_Question, Frontend] = Rule(
    "clients' certificates of a Gateway",
    Level.SHARED,
    _find,
    lambda *_: Frontend(ClientValidation(None)),
    is_memo=True,
)


def frontend_of(lookups: Lookups, gateway: GatewayName) -> Frontend:
    """Return the same by a memo, so that ListenerSets are translated again if this changes alone."""
    return lookups.derive(_FRONTEND, _Question(lookups.cluster, *gateway))
