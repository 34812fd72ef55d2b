"""What an Ingress' annotations say of its routes and hosts."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from typing import Any

from headgate.common.plugins.cautions import cautions
from headgate.common.plugins.checking import check_use
from headgate.common.plugins.errors import PluginFault
from headgate.common.problems import Problem
from headgate.common.resources import APISIX_PLUGIN_CONFIG, INGRESS, JsonObject, ObjectRef
from headgate.common.table import (
    BackendProtocol,
    Canary,
    ClientAuth,
    PathType,
    Retries,
    Stickiness,
    Timeouts,
    TlsPolicy,
)
from headgate.translator.annotations import PREFIX, Reading, ours, read_annotations
from headgate.translator.annotations.apisix import (
    APISIX_ANNOTATIONS,
    APISIX_PREFIX,
    apisix_annotations,
    read_apisix_annotations,
)
from headgate.translator.annotations.reading import field_of
from headgate.translator.dialects.ingress.canary import read_canary
from headgate.translator.dialects.ingress.document import class_name
from headgate.translator.dialects.ingress.nginx.policy import NginxPolicy
from headgate.translator.fragments.fragment import BackendUse
from headgate.translator.manifests.patches import NO_ROUTE_PATCH, OVER_TLS, RoutePatch
from headgate.translator.manifests.reading import shown
from headgate.translator.sources.certificates import AUTHORITIES, REVOCATIONS, SECRETS, stand_in
from headgate.translator.sources.plugin_bundles import PLUGIN_BUNDLES, BundleTarget, PluginBundle
from headgate.translator.sources.policies import NO_ROUTE_POLICY, ROUTE_POLICIES, ObjectTarget, RoutePolicy
from headgate.translator.world.graph import Lookups

_MAX_ATTEMPTS = 10
_VERSIONS = ("1.0", "1.1", "1.2", "1.3")


@dataclass(frozen=True, slots=True)
class IngressPolicy:
    """The annotations of one Ingress."""

    path_type: PathType | None
    """Of paths with type `ImplementationSpecific`; None if nothing is said of it."""
    patch: RoutePatch
    """What is said of its routes."""
    tls: TlsPolicy | None
    tls_field: str
    canary: Canary | None
    """With an empty upstream. The object is a canary and has no routes of its own."""
    refusal: str | None
    """Why all its requests are refused."""
    is_unreadable: bool
    """Whether that is because it cannot be read which requests it is for."""
    problems: tuple[Problem, ...]
    namespace: str = ""
    """Of the Services, instead of the object's own."""
    protocol: BackendProtocol | None = None
    """That is spoken with the Services, instead of what they say."""
    backends: tuple[BackendUse, ...] = ()
    """Upstreams that its plugins refer to."""
    shares_hosts_with: tuple[str, ...] = ()
    """As in `Fragment`."""
    resolver: str = ""
    """Who is asked for certificates; empty for none."""

    @property
    def concerns_routes(self) -> bool:
        """Whether it says anything of the routes."""
        return bool(self.refusal or self.patch.said)


_NOTHING_SAID = IngressPolicy(
    path_type=None,
    patch=NO_ROUTE_PATCH,
    tls=None,
    tls_field="",
    canary=None,
    refusal=None,
    is_unreadable=False,
    problems=(),
)


def read_policy(
    ref: ObjectRef, manifest: JsonObject, lookups: Lookups, nginx: NginxPolicy | None = None
) -> IngressPolicy:
    """Read an Ingress' annotations, and what policies say of all its routes.

    Looks up the Secret of clients' authorities, where one is named.
    """
    annotations, of_apisix = ours(manifest), apisix_annotations(manifest)
    policy = _read(ref, annotations, lookups) if annotations else _NOTHING_SAID
    if of_apisix:
        policy = _add_apisix(ref, policy, of_apisix, class_name(manifest), lookups)
    if nginx is not None:
        policy = _add_nginx(ref, policy, nginx, lookups.settings.nginx.annotations_prefix)
    target = ObjectTarget(INGRESS.group, INGRESS.kind, ref.namespace, ref.name)
    found = lookups.attached(ROUTE_POLICIES, target)
    return policy if found == NO_ROUTE_POLICY else _add_policy(ref, policy, found)


def _add_policy(ref: ObjectRef, policy: IngressPolicy, found: RoutePolicy) -> IngressPolicy:
    refusal = f"Ingress {ref.namespace}/{ref.name} refuses requests: {found.fault}" if found.fault else None
    return replace(
        policy,
        patch=policy.patch.over(found.patch),
        refusal=policy.refusal or refusal,
        is_unreadable=policy.is_unreadable or bool(refusal),
    )


def _add_nginx(ref: ObjectRef, policy: IngressPolicy, nginx: NginxPolicy, prefix: str) -> IngressPolicy:
    """Add what annotations of ingress-nginx say of all routes alike; ours and those of Apache APISIX go before them."""
    unreadable = (*nginx.reading.unreadable, *nginx.unreadable)
    if nginx.canary is None and not unreadable:
        return policy
    return replace(
        policy,
        canary=policy.canary or nginx.canary,
        refusal=policy.refusal or _refusal(ref, unreadable, f"{prefix}/"),
    )


def _add_apisix(
    ref: ObjectRef, policy: IngressPolicy, annotations: JsonObject, class_name: str | None, lookups: Lookups
) -> IngressPolicy:
    """Add what annotations of Apache APISIX say; ours go before them."""
    read = read_apisix_annotations(annotations)
    problems, unreadable = [*policy.problems, *read.problems], list(read.unreadable)
    shared, field = PluginBundle(), APISIX_ANNOTATIONS.field("plugin-config-name")
    if read.plugin_config:
        target = BundleTarget(APISIX_PLUGIN_CONFIG, ref.namespace, read.plugin_config, class_name)
        shared = lookups.attached(PLUGIN_BUNDLES, target)
        if shared.fault:
            unreadable.append(f"{APISIX_PREFIX}plugin-config-name")
            value = shown(read.plugin_config)
            message = f"{shared.fault}; until then every request is refused"
            problems.append(Problem(reason="PluginConfigNotFound", field=field, value=value, message=message))
    own = {use.name for use in read.plugins}
    plugins = (*(use for use in shared.uses if use.name not in own), *read.plugins)
    attempts = None if read.retries is None else min(read.retries, _MAX_ATTEMPTS)
    patch = RoutePatch(
        plugins=plugins,
        websocket=read.websocket,
        retries=None if attempts is None else Retries(attempts=attempts, on=("connect", "reset", "timeout")),
        timeouts=Timeouts(**read.timeouts) if read.timeouts else None,
    )
    return replace(
        policy,
        path_type=read.path_type or policy.path_type,
        patch=policy.patch.over(patch),
        refusal=policy.refusal or _refusal(ref, unreadable, ""),
        problems=tuple(problems),
        namespace=read.namespace,
        protocol=read.protocol,
        backends=tuple(use._replace(name_field=field, port_field=field) for use in shared.backends),
    )


def _read(ref: ObjectRef, annotations: JsonObject, lookups: Lookups) -> IngressPolicy:
    reading = read_annotations("Ingress", annotations)
    client_auth = _client_auth(reading, ref.namespace, lookups)
    tls = _tls(reading, client_auth)
    canary = read_canary(reading)
    if canary is not None:
        _refuse_what_the_main_decides(reading)
    fields = reading.group() | reading.group("rank") | _parts(reading)
    fields |= _plugins(reading, lookups.settings.plugin_names)
    conditions = [condition for several in reading.group("when").values() for condition in several]
    if client_auth is not None and client_auth.mode == "required":
        conditions.append(OVER_TLS)
    return IngressPolicy(
        path_type=reading.group("path").get("type"),
        patch=RoutePatch(conditions=tuple(conditions), **fields),
        tls=tls,
        tls_field=field_of(next(iter([*reading.written("client_auth"), *reading.written("tls")]), "")),
        canary=canary,
        refusal=_refusal(ref, reading.unreadable),
        is_unreadable=bool(reading.closed("when") or reading.closed("canary")),
        problems=tuple(reading.problems),
        shares_hosts_with=reading.group("sharing").get("namespaces", ()),
        resolver=reading.group("acme").get("resolver", ""),
    )


def _refuse_what_the_main_decides(reading: Reading) -> None:
    for group in ("", "rank", "retries", "timeouts", "stickiness", "tls", "client_auth"):
        for name in reading.written(group):
            reading.refuse(name, "must be on the Ingress that this one is a canary of")


def _refusal(ref: ObjectRef, unreadable: Iterable[str], prefix: str = PREFIX) -> str | None:
    names = ", ".join(f"{prefix}{name}" for name in unreadable)
    return f"Ingress {ref.namespace}/{ref.name} refuses requests: {names} cannot be followed" if names else None


def _parts(reading: Reading) -> dict[str, Any]:
    parts: dict[str, Any] = {}
    if retries := reading.group("retries"):
        parts["retries"] = Retries(**retries)
    if timeouts := reading.group("timeouts"):
        parts["timeouts"] = Timeouts(**timeouts)
    stickiness = reading.group("stickiness")
    if "cookie" in stickiness:
        parts["stickiness"] = Stickiness(**stickiness)
    elif "sticky-cookie" not in reading.written("stickiness"):
        for name in reading.written("stickiness"):
            reading.refuse(name, "must be together with sticky-cookie")
    return parts


def _plugins(reading: Reading, plugin_names: Collection[str]) -> dict[str, Any]:
    """Leave the plugins out if one of them is not there, or does not take what it is told."""
    try:
        for use in reading.group().get("plugins", ()):
            check_use(use, plugin_names)
            for one in cautions(use):
                reading.caution("plugins", f"plugin {use.name}, {one.field}: {one.message}")
    except PluginFault as fault:
        reading.refuse("plugins", f"must be plugins that gateways have, with what they take; {fault}")
        return {"plugins": ()}
    return {}


def _client_auth(reading: Reading, namespace: str, lookups: Lookups) -> ClientAuth | None:
    names, written = reading.written("client_auth"), reading.group("client_auth")
    if not names or reading.closed("client_auth"):
        return None
    secret = written.pop("secret", None)
    if secret is not None and written.keys() & {"ca_pem", "crl_pem"}:
        reading.refuse("client-auth-secret", "must not be together with client-auth-ca or client-auth-crl")
    elif secret is not None:
        written |= _authorities(reading, secret[0] or namespace, secret[1], lookups)
    elif "ca_pem" not in written:
        reading.refuse(names[0], "must be together with client-auth-ca or client-auth-secret")
    return None if reading.closed("client_auth") else ClientAuth(**written)


def _authorities(reading: Reading, namespace: str, name: str, lookups: Lookups) -> JsonObject:
    secret = lookups.get(SECRETS, namespace, name)
    fault = None
    if secret is None:
        fault = "not found; it must be of type kubernetes.io/tls"
    elif not secret.authorities_pem:
        fault = "has no readable certificates under ca.crt"
    elif secret.revocations_pem == "":
        fault = "has a revocation list that cannot be read"
    if secret is None or fault:
        reading.refuse("client-auth-secret", f"Secret {namespace}/{name} {fault}")
        return {}
    if instead := stand_in(lookups, namespace, name, AUTHORITIES, REVOCATIONS):
        message = f"Secret {namespace}/{name} {instead}"
        field = field_of("client-auth-secret")
        reading.problems.append(Problem(reason="InvalidCertificate", field=field, value=shown(name), message=message))
    return {"ca_pem": secret.authorities_pem, "crl_pem": secret.revocations_pem or ""}


def _tls(reading: Reading, client_auth: ClientAuth | None) -> TlsPolicy | None:
    written = reading.group("tls")
    least, most = written.get("min_version"), written.get("max_version")
    if least and most and _VERSIONS.index(least) > _VERSIONS.index(most):
        reading.refuse("max-tls-version", f"must not be older than min-tls-version, which is {least}")
        del written["max_version"]
    return TlsPolicy(client_auth=client_auth, **written) if written or client_auth else None
