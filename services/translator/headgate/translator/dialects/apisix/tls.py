"""One ApisixTls to one fragment: the certificate of its hosts, and what is asked of their clients."""

from headgate.common.patterns import bounded_patterns
from headgate.common.problems import Problem
from headgate.common.resources import JsonObject, ObjectRef
from headgate.common.table import ClientAuth, TlsPolicy
from headgate.translator.annotations.host_sharing import read_host_sharing
from headgate.translator.dialects.apisix.context import Context
from headgate.translator.dialects.apisix.models.fields import SecretReference
from headgate.translator.dialects.apisix.models.tls import Client, TlsSpec
from headgate.translator.fragments.fragment import CertificateRef, Fragment, NameClaim, TlsClaim
from headgate.translator.manifests.reading import shown
from headgate.translator.manifests.specs import Spec, refuse, warn
from headgate.translator.manifests.texts import regex
from headgate.translator.objects.document import identify
from headgate.translator.sources.certificates import PAIR, SECRETS, TlsSecret, covers, stand_in


def translate_tls(ref: ObjectRef, manifest: JsonObject, context: Context) -> Fragment:
    """Return what an ApisixTls that is ours contributes."""
    problems: list[Problem] = []
    spec = Spec(manifest.get("spec"), problems).rest(TlsSpec)
    if spec is None:
        return Fragment(identify(ref, manifest), problems=tuple(problems))
    hosts = tuple(dict.fromkeys(host.lower() for host in spec.hosts))
    policy = _policy(ref, spec.client, context, problems) if spec.client is not None else None
    shared_with = read_host_sharing(manifest, problems)
    return Fragment(
        identity=identify(ref, manifest),
        shares_hosts_with=shared_with,
        hosts=tuple(map(_virtual_host, hosts)) if policy is not None else (),
        names=_claims(ref, spec, hosts, context, problems),
        tls=tuple(TlsClaim(_virtual_host(host), policy, "spec.client") for host in hosts if policy is not None),
        problems=tuple(problems),
        # The hosts are there for connections to them; requests are the business of whichever route takes them.
        unmatched="next-host",
        settles_tls=True,
    )


def _virtual_host(host: str) -> str:
    """Return a host as routes of Apache APISIX have it: a wildcard is for any depth."""
    return f"*{host}" if host.startswith("*.") else host


def _claims(
    ref: ObjectRef, spec: TlsSpec, hosts: tuple[str, ...], context: Context, problems: list[Problem]
) -> tuple[NameClaim, ...]:
    namespace, name = spec.secret.namespace or ref.namespace, spec.secret.name
    if not context.lookups.is_assumed:
        secret = context.lookups.get(SECRETS, namespace, name)
        if secret is None or secret.problem:
            _refuse_secret(spec.secret, namespace, secret, "spec.secret", problems)
            return ()
        if instead := stand_in(context.lookups, namespace, name, PAIR):
            problems.append(
                refuse("InvalidCertificate", "spec.secret.name", f"Secret {namespace}/{name} {instead}", name)
            )
        names = frozenset(secret.names)
        for index, host in enumerate(hosts):
            if not covers(names, host):
                message = f"the certificate of Secret {namespace}/{name} is not valid for it; it is presented anyway"
                problems.append(warn("CertificateMismatch", f"spec.hosts[{index}]", message, host))
    certificate = CertificateRef(ref.cluster, namespace, name)
    return tuple(NameClaim(host, certificate, f"spec.hosts[{index}]") for index, host in enumerate(hosts))


def _refuse_secret(
    written: SecretReference, namespace: str, secret: TlsSecret | None, field: str, problems: list[Problem]
) -> None:
    why = "not found" if secret is None else secret.problem
    remedy = "; it must be of type kubernetes.io/tls, or have the keys cert and key" if secret is None else ""
    reason = "SecretNotFound" if secret is None else "InvalidCertificate"
    message = f"Secret {namespace}/{written.name} {why}{remedy}"
    problems.append(refuse(reason, f"{field}.name", message, shown(written.name)))


@bounded_patterns()
def _policy(ref: ObjectRef, client: Client, context: Context, problems: list[Problem]) -> TlsPolicy | None:
    """Return what is asked of clients. What cannot be read lets no client in: there are no authorities then."""
    patterns = []
    for index, pattern in enumerate(client.skip_mtls_uri_regex):
        try:
            patterns.append(regex(pattern))
        except ValueError as error:
            at = f"spec.client.skip_mtls_uri_regex[{index}]"
            problems.append(refuse("InvalidValue", at, f"{error}; its paths need a certificate", pattern))
    if client.ca_secret is None:
        problems.append(warn("Required", "spec.client.caSecret", "without it nothing is asked of clients"))
        return None
    authorities = _authorities(ref, client.ca_secret, context, problems)
    auth = ClientAuth(ca_pem=authorities, depth=client.depth or 1, skip_paths=tuple(patterns))
    return TlsPolicy(client_auth=auth)


def _authorities(ref: ObjectRef, written: SecretReference, context: Context, problems: list[Problem]) -> str:
    namespace = written.namespace or ref.namespace
    if context.lookups.is_assumed:
        return "-"
    secret = context.lookups.get(SECRETS, namespace, written.name)
    if secret is not None and secret.authorities_pem:
        return secret.authorities_pem
    if secret is not None and secret.sealed is not None and secret.sealed.certificate is not None:
        return secret.sealed.certificate.chain_pem
    why = "not found" if secret is None else "has no readable certificates under ca.crt, cert or tls.crt"
    message = f"Secret {namespace}/{written.name} {why}; until then no client is let in"
    problems.append(refuse("InvalidAuthorities", "spec.client.caSecret.name", message, written.name))
    return ""
