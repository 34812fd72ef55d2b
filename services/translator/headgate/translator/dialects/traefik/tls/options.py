"""TLSOptions as TLS policies.

An option that cannot be followed lets no client in, and says so: it may be there to keep clients out. The one named
`default` holds for all server names whose routes name no other; it is the policy of the gateways' HTTPS listener.
"""

from typing import Any, Final, Literal

from headgate.common.problems import Problem
from headgate.common.resources import JsonObject, ObjectRef
from headgate.common.table import HTTPS_LISTENER, ClientAuth, Listener, Provenance, TlsPolicy, own_listener
from headgate.translator.dialects.traefik.models.tls import ClientAuthentication, TlsOptionSpec
from headgate.translator.dialects.traefik.tls.names import CIPHERS, CURVES, NEWER_CIPHERS, VERSIONS
from headgate.translator.fragments.fragment import Fragment
from headgate.translator.manifests import texts
from headgate.translator.manifests.reading import as_object
from headgate.translator.manifests.specs import Spec, refuse, warn
from headgate.translator.objects.document import identify
from headgate.translator.sources.certificates import SECRETS
from headgate.translator.world.graph import Lookups

DEFAULT: Final = "default"
"""Name of the TLSOption and of the TLSStore that hold where no other is named."""
NOBODY: Final = TlsPolicy(client_auth=ClientAuth(ca_pem=""))
"""Lets no client in: there are no authorities."""
_OLDEST: Final = "1.2"
"""Without `minVersion`."""
_DEPTH: Final = 16
"""Go bounds no chains; this is the most that the table says."""
_ACME: Final = "acme-tls/1"

_Mode = Literal["required", "required-any", "optional", "optional-any"]
_MODES: Final[dict[str, _Mode]] = {
    "": "required",
    "RequestClientCert": "optional-any",
    "RequireAnyClientCert": "required-any",
    "VerifyClientCertIfGiven": "optional",
    "RequireAndVerifyClientCert": "required",
}


def translate_tls_option(ref: ObjectRef, manifest: JsonObject, lookups: Lookups) -> Fragment:
    """Return what a TLSOption contributes: the policy of the HTTPS listener if it is the default one."""
    problems: list[Problem] = []
    policy = read_tls_option(ref.namespace, manifest, lookups, problems)
    own: tuple[Listener, ...] = ()
    if ref.name == DEFAULT and policy is not None:
        provenance = Provenance(cluster=ref.cluster, kind="TLSOption", namespace=ref.namespace, name=ref.name)
        own = (own_listener(HTTPS_LISTENER).model_copy(update={"tls": policy, "provenance": provenance}),)
    return Fragment(identify(ref, manifest), own_listeners=own, problems=tuple(problems))


def read_tls_option(
    namespace: str, manifest: JsonObject, lookups: Lookups, problems: list[Problem]
) -> TlsPolicy | None:
    """Return the policy of a TLSOption; `NOBODY` if it cannot be followed.

    None: it cannot be read, and asks nothing of clients.
    """
    written = manifest.get("spec")
    spec = Spec({} if written is None else written, problems).rest(TlsOptionSpec)
    if spec is None:
        return NOBODY if "clientAuth" in as_object(written) else None
    return policy_of(spec, namespace, lookups, problems)


def policy_of(spec: TlsOptionSpec, namespace: str, lookups: Lookups, problems: list[Problem]) -> TlsPolicy:
    """Return the policy of a TLSOption of a namespace; `NOBODY` if it cannot be followed, which `problems` say."""
    found: list[Problem] = []
    policy = TlsPolicy.model_validate(
        {
            **_versions(spec, found),
            **_ciphers(spec, found),
            "curves": _curves(spec, found),
            "alpn": _alpn(spec, found),
            "client_auth": _client_auth(spec.client_auth, namespace, lookups, found),
            "strict_names": spec.sni_strict,
            "session_tickets": not spec.disable_session_tickets,
        }
    )
    if spec.prefer_server_cipher_suites is not None:
        found.append(warn("Deprecated", "spec.preferServerCipherSuites", "has no effect: leave it out"))
    problems += found
    return NOBODY if any(problem.severity == "error" for problem in found) else policy


def _versions(spec: TlsOptionSpec, problems: list[Problem]) -> dict[str, str]:
    """Return the bounds. A name that is no version is left out with a warning, as Traefik leaves it out."""
    bounds = {"minVersion": spec.min_version, "maxVersion": spec.max_version}
    for field, name in bounds.items():
        if name and name not in VERSIONS:
            problems.append(warn("InvalidValue", f"spec.{field}", f"must be one of {', '.join(VERSIONS)}", name))
    least, most = (VERSIONS.get(name, "") for name in bounds.values())
    if most and (least or _OLDEST) > most:
        message = f"is older than minVersion, which is TLS {least or _OLDEST}: no client can connect"
        problems.append(refuse("InvalidValue", "spec.maxVersion", message, spec.max_version))
        return {}
    if not spec.cipher_suites or set(spec.cipher_suites) - NEWER_CIPHERS:
        return {"min_version": least, "max_version": most}
    return {"min_version": "1.3"}  # none for older versions


def _ciphers(spec: TlsOptionSpec, problems: list[Problem]) -> dict[str, Any]:
    names = [name for name in spec.cipher_suites if name not in NEWER_CIPHERS]
    unknown = next((name for name in names if name not in CIPHERS), None)
    if unknown is not None:
        at = f"spec.cipherSuites[{spec.cipher_suites.index(unknown)}]"
        message = "is no suite of Go's crypto/tls, such as TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"
        problems.append(refuse("InvalidValue", at, message, unknown))
        return {}
    if not names:
        return {}
    try:
        ciphers = texts.ciphers(":".join(dict.fromkeys(CIPHERS[name] for name in names)))
    except ValueError:
        message = "names no suite that gateways can use: add one such as TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"
        problems.append(refuse("InvalidValue", "spec.cipherSuites", message, names[0]))
        return {}
    return {"ciphers": ciphers, "prefer_server_ciphers": True}


def _curves(spec: TlsOptionSpec, problems: list[Problem]) -> tuple[str, ...]:
    for index, name in enumerate(spec.curve_preferences):
        if name not in CURVES:
            message = f"must be one of {', '.join(name for name in CURVES if not name.islower())}"
            problems.append(refuse("InvalidValue", f"spec.curvePreferences[{index}]", message, name))
            return ()
    return tuple(dict.fromkeys(CURVES[name] for name in spec.curve_preferences))


def _alpn(spec: TlsOptionSpec, problems: list[Problem]) -> tuple[str, ...]:
    default = TlsPolicy().alpn
    if "alpn_protocols" not in spec.model_fields_set:
        return default
    for index, name in enumerate(spec.alpn_protocols):
        if name not in (*default, _ACME):
            message = f"is not spoken here, and is left out; gateways speak {' and '.join(default)}"
            problems.append(warn("UnsupportedValue", f"spec.alpnProtocols[{index}]", message, name))
    return tuple(dict.fromkeys(name for name in spec.alpn_protocols if name in default))


# Clients' certificates


def _client_auth(
    written: ClientAuthentication | None, namespace: str, lookups: Lookups, problems: list[Problem]
) -> ClientAuth | None:
    if written is None or written.client_auth_type == "NoClientCert":
        return None
    kind = written.client_auth_type
    if not kind and not written.secret_names:
        return None
    mode = _MODES[kind]
    needs_authorities = mode in ("required", "optional")
    if needs_authorities and not written.secret_names:
        message = f"must name a Secret with authorities for {kind}; until then no client is let in"
        problems.append(refuse("Required", "spec.clientAuth.secretNames", message))
    authorities = _authorities(written, namespace, lookups, problems, is_needed=needs_authorities)
    return ClientAuth(mode=mode, ca_pem=authorities, depth=_DEPTH)


def _authorities(
    written: ClientAuthentication, namespace: str, lookups: Lookups, problems: list[Problem], *, is_needed: bool
) -> str:
    """Return the authorities of all Secrets together. One that lacks them costs its clients, and no others."""
    if lookups.is_assumed:
        return "-"
    found: list[str] = []
    missing: list[Problem] = []
    for index, name in enumerate(written.secret_names):
        secret = lookups.get(SECRETS, namespace, name)
        if secret is not None and secret.authorities_pem:
            found.append(secret.authorities_pem)
            continue
        why = "not found" if secret is None else "has no readable certificates under tls.ca or ca.crt"
        message = f"Secret {namespace}/{name} {why}; clients with its certificates are not let in"
        missing.append(warn("InvalidAuthorities", f"spec.clientAuth.secretNames[{index}]", message, name))
    if not is_needed:
        missing.clear()  # certificates are taken whoever vouches for them
    if missing and not found:
        message = f"{missing[0].message}, nor are any others"
        missing[0] = refuse("InvalidAuthorities", str(missing[0].field), message, written.secret_names[0])
    problems += missing
    return "".join(pem if pem.endswith("\n") else f"{pem}\n" for pem in found)
