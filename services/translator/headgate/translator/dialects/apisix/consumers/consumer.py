"""One ApisixConsumer to one consumer of the table.

Its secrets arrive sealed, by value as well as from a Secret, and are passed on as they are.
"""

from typing import NamedTuple

from headgate.common.plugins.credentials import CREDENTIALS
from headgate.common.problems import Problem
from headgate.common.resources import JsonObject, ObjectRef
from headgate.translator.dialects.apisix.consumers.credentials import (
    WrittenCredential,
    contribute,
    from_secret,
    read_sealed,
    renamed,
    split_plugins,
)
from headgate.translator.dialects.apisix.context import Context
from headgate.translator.dialects.apisix.models.consumer import (
    BasicAuthValue,
    HmacAuthValue,
    JwtAuthValue,
    KeyAuthValue,
    LdapAuthValue,
    WolfRbacValue,
)
from headgate.translator.dialects.apisix.models.fields import LocalSecret
from headgate.translator.dialects.apisix.models.plugin import Plugin
from headgate.translator.fragments.fragment import Fragment
from headgate.translator.manifests.models import Model
from headgate.translator.manifests.reading import as_object
from headgate.translator.manifests.specs import Spec, read_part, refuse, warn

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


class _Rest(Model):
    """What of a spec is read apart."""

    ingress_class_name: str = ""


def translate_consumer(ref: ObjectRef, manifest: JsonObject, context: Context) -> Fragment:
    """Return what an ApisixConsumer that is ours contributes."""
    problems: list[Problem] = []
    spec = Spec(manifest.get("spec"), problems)
    spec.rest(_Rest, "authParameter", "plugins")
    raw = as_object(manifest.get("spec"))
    by_plugin: dict[str, WrittenCredential] = {}
    parameters = as_object(raw.get("authParameter"))
    written = next((one for one in _PARAMETERS if parameters.get(one.name) is not None), None)
    if written is not None:
        found = _read_parameter(ref, written, as_object(parameters[written.name]), context, problems)
        by_plugin |= {found.plugin: found} if found is not None else {}
    plugins, credentials = split_plugins(spec.each("plugins", Plugin), ref.cluster)
    by_plugin |= {one.plugin: one for one in credentials}
    is_empty = written is None and raw.get("authParameter") is not None
    if is_empty and not credentials:
        names = ", ".join(one.name for one in _PARAMETERS)
        message = f"must have one of {names}; leave it out for a consumer that only anonymous_consumer leads to"
        problems.append(refuse("Required", "spec.authParameter", message))
    is_anonymous = written is None and not credentials and not is_empty
    return contribute(ref, manifest, context, by_plugin.values(), plugins, problems, is_anonymous=is_anonymous)


def _read_parameter(
    ref: ObjectRef, written: _Parameter, holder: JsonObject, context: Context, problems: list[Problem]
) -> WrittenCredential | None:
    field = f"spec.authParameter.{written.name}"
    if holder.get("secretRef") is not None:
        secret = read_part(LocalSecret, holder["secretRef"], f"{field}.secretRef", problems)
        if secret is None or context.lookups.is_assumed:
            return None
        return from_secret(written.plugin, ref.namespace, secret, context.lookups, problems)
    sealed = read_sealed(holder, ref.cluster)
    whole = {**as_object(holder.get("value")), **dict.fromkeys(sealed, _HIDDEN)}
    if not whole:
        problems.append(refuse("Required", f"{field}.value", "must be given, or a secretRef"))
        return None
    part = read_part(written.model, whole, f"{field}.value", problems)
    if part is None:
        return None
    values = part.value.model_dump(by_alias=True, exclude_unset=True, exclude=set(part.value.model_extra or ()))
    config = renamed(values)
    known = CREDENTIALS[written.plugin].model_fields.keys()
    for name in sorted(config.keys() - known - {"private_key"}):
        message = "is not looked at here: it is said on the route, in the plugin's own configuration"
        problems.append(warn("UnsupportedField", f"{field}.value.{name}", message))
    kept = {name: value for name, value in config.items() if name in known and name not in sealed}
    secrets = {name: one for name, one in sealed.items() if name in known}
    return WrittenCredential(written.plugin, kept, secrets, f"{field}.value")
