"""One ApisixConsumer to one consumer of the table.

Its secrets arrive sealed, by value as well as from a Secret, and are passed on as they are.
"""

from typing import Any, NamedTuple

from pydantic import ValidationError

from headgate.common.plugins.checking import check_credential
from headgate.common.plugins.credentials import CREDENTIALS
from headgate.common.plugins.errors import PluginFault
from headgate.common.problems import Problem
from headgate.common.resources import JsonObject, ObjectRef
from headgate.common.sealing import SealedValue
from headgate.common.table import Consumer, Credential, PluginUse, Provenance
from headgate.translator.certificates import SECRETS
from headgate.translator.dialects.apisix.context import Context, identify
from headgate.translator.dialects.apisix.labels import CONSUMER_GROUP, group_name, labels_of
from headgate.translator.dialects.apisix.models.consumer import (
    BasicAuthValue,
    HmacAuthValue,
    JwtAuthValue,
    KeyAuthValue,
    LdapAuthValue,
    WolfRbacValue,
)
from headgate.translator.dialects.apisix.models.fields import LocalSecret, Model
from headgate.translator.dialects.apisix.models.plugin import Plugin
from headgate.translator.dialects.apisix.plugins import MISSING_SECRET, read_all
from headgate.translator.dialects.apisix.reading import Part, Spec, read_part, refuse, warn
from headgate.translator.fragment import Fragment
from headgate.translator.manifest import as_object, creation_time

KIND = "ApisixConsumer"
_HIDDEN = "***"


class _Parameter(NamedTuple):
    """One way to recognise a consumer."""

    name: str
    plugin: str
    model: type[Model]


_PARAMETERS = (
    _Parameter("keyAuth", "key-auth", KeyAuthValue),
    _Parameter("basicAuth", "basic-auth", BasicAuthValue),
    _Parameter("jwtAuth", "jwt-auth", JwtAuthValue),
    _Parameter("wolfRBAC", "wolf-rbac", WolfRbacValue),
    _Parameter("hmacAuth", "hmac-auth", HmacAuthValue),
    _Parameter("ldapAuth", "ldap-auth", LdapAuthValue),
)
"""In the order in which Apache APISIX looks for them."""
_RENAMED = {"access_key": "key_id"}


class _Rest(Model):
    """What of a spec is read apart."""

    ingress_class_name: str = ""


class _Written(NamedTuple):
    """A credential before it is checked."""

    plugin: str
    config: dict[str, Any]
    secrets: dict[str, SealedValue]
    field: str


def translate_consumer(ref: ObjectRef, manifest: JsonObject, context: Context) -> Fragment:
    """Return what an ApisixConsumer that is ours contributes."""
    problems: list[Problem] = []
    spec = Spec(manifest.get("spec"), problems)
    spec.rest(_Rest, "authParameter", "plugins")
    raw = as_object(manifest.get("spec"))
    by_plugin: dict[str, _Written] = {}
    parameters = as_object(raw.get("authParameter"))
    written = next((one for one in _PARAMETERS if parameters.get(one.name) is not None), None)
    if written is not None:
        found = _read_parameter(ref, written, as_object(parameters[written.name]), context, problems)
        by_plugin |= {found.plugin: found} if found is not None else {}
    plugins, credentials = _split(spec.each("plugins", Plugin))
    for part in credentials:
        sealed = _read_sealed(as_object(part.value.model_extra).get("sealed"))
        name = part.value.name
        by_plugin[name] = _Written(name, dict(part.value.config), sealed, f"{part.field}.config")
    if written is None and not credentials:
        names = ", ".join(one.name for one in _PARAMETERS)
        problems.append(refuse("Required", "spec.authParameter", f"must have one of {names}"))
    uses = [use for one in by_plugin.values() if (use := _check(one, problems))]
    labels = labels_of(manifest)
    group = labels.get(CONSUMER_GROUP, "")
    own = read_all(plugins, ref.namespace, context, problems)
    consumer = Consumer(
        key=f"{ref.cluster}/{ref.namespace}/{ref.name}",
        name=f"{ref.namespace}_{ref.name}",
        group=group_name(ref.namespace, group) if group else "",
        labels=labels,
        credentials=tuple(Credential(use=use) for use in uses),
        plugins=own.closed,
        created_at=creation_time(manifest),
        provenance=Provenance(cluster=ref.cluster, kind=KIND, namespace=ref.namespace, name=ref.name),
    )
    return Fragment(
        identify(ref, manifest),
        own=(consumer,) if uses else (),
        backends=own.backends if uses else (),
        problems=tuple(problem for problem in problems if not problem.field.endswith(".sealed")),
        falls_through=True,
    )


def _split(parts: list[Part[Plugin]]) -> tuple[list[Part[Plugin]], list[Part[Plugin]]]:
    """Return the plugins of a consumer's requests, and those by which it is recognised."""
    enabled = [part for part in parts if part.value.enable]
    credentials = [part for part in enabled if part.value.name in CREDENTIALS]
    return [part for part in enabled if part not in credentials], credentials


def _read_parameter(
    ref: ObjectRef, written: _Parameter, holder: JsonObject, context: Context, problems: list[Problem]
) -> _Written | None:
    field = f"spec.authParameter.{written.name}"
    if holder.get("secretRef") is not None:
        secret = read_part(LocalSecret, holder["secretRef"], f"{field}.secretRef", problems)
        return _from_secret(ref, written, secret, context, problems) if secret is not None else None
    sealed = _read_sealed(holder.get("sealed"))
    whole = {**as_object(holder.get("value")), **dict.fromkeys(sealed, _HIDDEN)}
    if not whole:
        problems.append(refuse("Required", f"{field}.value", "must be given, or a secretRef"))
        return None
    part = read_part(written.model, whole, f"{field}.value", problems)
    if part is None:
        return None
    values = part.value.model_dump(by_alias=True, exclude_unset=True, exclude=set(part.value.model_extra or ()))
    config = _renamed(values)
    known = CREDENTIALS[written.plugin].model_fields.keys()
    for name in sorted(config.keys() - known - {"private_key"}):
        message = "is not looked at here: it is said on the route, in the plugin's own configuration"
        problems.append(warn("UnsupportedField", f"{field}.value.{name}", message))
    kept = {name: value for name, value in config.items() if name in known and name not in sealed}
    return _Written(
        written.plugin, kept, {name: one for name, one in sealed.items() if name in known}, f"{field}.value"
    )


def _renamed(values: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if name not in _RENAMED} | {
        new: values[old] for old, new in _RENAMED.items() if values.get(old) and not values.get(new)
    }


def _from_secret(
    ref: ObjectRef, written: _Parameter, part: Part[LocalSecret], context: Context, problems: list[Problem]
) -> _Written | None:
    if context.lookups is None:
        return None
    name = part.value.name
    secret = context.lookups.get(SECRETS, ref.namespace, name)
    if secret is None or secret.held is None:
        message = f"Secret {ref.namespace}/{name} {MISSING_SECRET}"
        problems.append(refuse("SecretNotFound", f"{part.field}.name", message, name))
        return None
    known = CREDENTIALS[written.plugin].model_fields.keys()
    values = _renamed(dict(secret.held.values))
    held = {key: value for key, value in values.items() if key in known}
    return _Written(written.plugin, {}, held, f"{part.field}.name")


def _read_sealed(value: Any) -> dict[str, SealedValue]:
    found = {}
    for name, one in as_object(value).items():
        try:
            found[name] = SealedValue.model_validate(one)
        except ValidationError:
            continue  # nobody but a watcher writes these; without it the field is missing, which is said
    return found


def _check(written: _Written, problems: list[Problem]) -> PluginUse | None:
    use = PluginUse(name=written.plugin, config=written.config, secrets=written.secrets)
    try:
        check_credential(use)
    except PluginFault as fault:
        at = written.field + fault.field.removeprefix("config")
        problems.append(refuse("InvalidCredential", at, f"{written.plugin}: {fault.fault}"))
        return None
    return use
