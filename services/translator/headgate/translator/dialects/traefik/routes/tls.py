"""TLS of an IngressRoute: its certificate, and what its TLSOption asks of clients.

The certificate is presented for all names that it is valid for, whichever route has them. A TLSOption holds for the
hosts that rules name.
"""

from collections.abc import Iterable

from headgate.common.problems import Problem
from headgate.common.resources import ObjectRef
from headgate.common.table import ANY_HOST, TlsPolicy
from headgate.common.table.hosts import is_pattern
from headgate.translator.dialects.traefik.document import TLS_OPTIONS
from headgate.translator.dialects.traefik.models.route import RouteTls
from headgate.translator.dialects.traefik.references import BadReference, find_provided
from headgate.translator.dialects.traefik.tls.following import FIELD as OPTIONS
from headgate.translator.dialects.traefik.tls.following import policy_of
from headgate.translator.dialects.traefik.tls.options import NOBODY
from headgate.translator.fragments.fragment import CertificateRef, NameClaim, TlsClaim
from headgate.translator.fragments.spots import Spot
from headgate.translator.manifests.specs import refuse, warn
from headgate.translator.sources.certificates import PAIR, SECRETS, covers, stand_in
from headgate.translator.world.graph import Lookups

_FIELD = "spec.tls.secretName"


def claim_names(
    tls: RouteTls, hosts: Iterable[str], ref: ObjectRef, lookups: Lookups, problems: list[Problem]
) -> tuple[NameClaim, ...]:
    """Return the server names for which the certificate is presented; none without one, or while it cannot be used.

    Args:
        tls: of the object.
        hosts: of its routes.
        ref: the object.
        lookups: where the Secret is found.
        problems: gets what is wrong with it; the routes are served with the gateways' default certificate then.
    """
    name = tls.secret_name
    if not name or lookups.is_assumed:
        return ()
    secret = lookups.get(SECRETS, ref.namespace, name)
    if secret is None or secret.problem:
        why = "not found" if secret is None else secret.problem
        reason = "SecretNotFound" if secret is None else "InvalidCertificate"
        message = f"Secret {ref.namespace}/{name} {why}; the default certificate is presented instead"
        problems.append(refuse(reason, _FIELD, message, name))
        return ()
    if instead := stand_in(lookups, ref.namespace, name, PAIR):
        problems.append(refuse("InvalidCertificate", _FIELD, f"Secret {ref.namespace}/{name} {instead}", name))
    valid = frozenset(secret.names)
    for host in sorted(host for host in hosts if _is_name(host)):
        if not covers(valid, host):
            message = f"the certificate of Secret {ref.namespace}/{name} is not valid for host {host}"
            problems.append(warn("CertificateMismatch", _FIELD, message, name))
    certificate = CertificateRef(ref.cluster, ref.namespace, name)
    return tuple(NameClaim(valid_name, certificate, _FIELD) for valid_name in sorted(valid))


def claim_tls(
    policy: TlsPolicy | None, hosts: Iterable[str], spots: Iterable[Spot], problems: list[Problem]
) -> tuple[TlsClaim, ...]:
    """Return the hosts at which a policy holds. Server names of rules without a plain host are unknown beforehand.

    Routes that name no TLSOption say so: with routes of the same host that name one they disagree, as in Traefik.
    """
    claims: list[TlsClaim] = []
    for host in sorted(hosts):
        if _is_name(host):
            claims += (TlsClaim(spot.key(host), policy, OPTIONS, must_agree=True) for spot in spots)
        elif policy is not None:
            message = (
                "connections have their TLS by server name, so rules for other hosts than plain ones have the default"
            )
            problems.append(warn("TLSOptionNotUsed", OPTIONS, message))
    return tuple(claims)


def claim_default_tls(spot: Spot, hosts: Iterable[str], lookups: Lookups, problems: list[Problem]) -> list[TlsClaim]:
    """Return what the TLSOption of an entry point asks at the hosts of routes that say nothing of TLS."""
    if not spot.tls_options or lookups.is_assumed:
        return []
    try:
        found = find_provided(TLS_OPTIONS, spot.tls_options, lookups)
        policy = policy_of(found, "spec.entryPoints", lookups, problems)
    except BadReference as error:
        message = f"{error}; no client is let in"
        problems.append(refuse(error.reason, "spec.entryPoints", message, spot.tls_options))
        policy = NOBODY
    return [
        TlsClaim(spot.key(host), policy, "spec.entryPoints", must_agree=True)
        for host in sorted(hosts)
        if _is_name(host)
    ]


def _is_name(host: str) -> bool:
    """Whether a host of the table is a name, or a wildcard for one label."""
    return host != ANY_HOST and not is_pattern(host) and not host.startswith("**")
