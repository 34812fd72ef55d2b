"""What recognises a consumer, of whatever kind its object is: written there or in a Secret, sealed, and checked."""

from collections.abc import Iterable
from typing import Any, NamedTuple

from pydantic import BaseModel, ValidationError

from headgate.common.plugins.checking import check_credential
from headgate.common.plugins.credentials import CREDENTIALS
from headgate.common.plugins.errors import PluginFault
from headgate.common.problems import Problem
from headgate.common.resources import APISIX_CONSUMER, JsonObject, ObjectRef
from headgate.common.sealing import ClusterValue, SealedValue
from headgate.common.table import Consumer, Credential, PluginUse, Provenance
from headgate.translator.dialects.apisix.context import Context
from headgate.translator.dialects.apisix.labels import CONSUMER_GROUP, group_name, labels_of
from headgate.translator.dialects.apisix.models.fields import LocalSecret, SecretReference
from headgate.translator.dialects.apisix.models.plugin import Plugin
from headgate.translator.dialects.apisix.plugins import read_all
from headgate.translator.fragments.fragment import Fragment
from headgate.translator.manifests.reading import as_object, as_text, creation_time
from headgate.translator.manifests.specs import Part, refuse
from headgate.translator.objects.document import identify
from headgate.translator.objects.plugin_uses import MISSING_SECRET
from headgate.translator.sources.certificates import SECRETS, values_of
from headgate.translator.world.graph import Lookups

_RENAMED = {"access_key": "key_id"}
"""Fields by the names that older releases had for them."""


class WrittenCredential(NamedTuple):
    """A credential before it is checked."""

    plugin: str
    config: dict[str, Any]
    secrets: dict[str, ClusterValue]
    field: str
    name: str = ""
    """That was given to it."""


def split_plugins(parts: list[Part[Plugin]], cluster: str) -> tuple[list[Part[Plugin]], list[WrittenCredential]]:
    """Return the plugins of a consumer's requests, and those by which it is recognised."""
    enabled = [part for part in parts if part.value.enable]
    credentials = [part for part in enabled if part.value.name in CREDENTIALS]
    written = [
        WrittenCredential(value.name, dict(value.config), read_sealed(value, cluster), f"{field}.config")
        for value, field in credentials
    ]
    return [part for part in enabled if part not in credentials], written


def read_sealed(holder: Any, cluster: str) -> dict[str, ClusterValue]:
    """Return what a cluster's watcher has sealed of a part of an object."""
    values = holder.model_extra if isinstance(holder, BaseModel) else holder
    found = {}
    for name, one in as_object(as_object(values).get("sealed")).items():
        try:
            found[name] = SealedValue.model_validate(one).of(cluster)
        except ValidationError:
            continue  # only a watcher writes these; without it the field is missing, which is said
    return found


def renamed(values: dict[str, Any]) -> dict[str, Any]:
    """Return a credential's fields by today's names."""
    return {name: value for name, value in values.items() if name not in _RENAMED} | {
        new: values[old] for old, new in _RENAMED.items() if values.get(old) and not values.get(new)
    }


def from_secret(
    plugin: str,
    namespace: str,
    part: Part[LocalSecret] | Part[SecretReference],
    lookups: Lookups,
    problems: list[Problem],
) -> WrittenCredential | None:
    """Return a credential whose fields are the keys of a Secret."""
    name = part.value.name
    secret = lookups.get(SECRETS, namespace, name)
    if secret is None or secret.held is None:
        message = f"Secret {namespace}/{name} {MISSING_SECRET}"
        problems.append(refuse("SecretNotFound", f"{part.field}.name", message, name))
        return None
    known = CREDENTIALS[plugin].model_fields.keys()
    held = {key: value for key, value in renamed(dict(values_of(secret.held, lookups.cluster))).items() if key in known}
    return WrittenCredential(plugin, {}, held, f"{part.field}.name")


def contribute(
    ref: ObjectRef,
    manifest: JsonObject,
    context: Context,
    written: Iterable[WrittenCredential],
    plugins: list[Part[Plugin]],
    problems: list[Problem],
    *,
    is_anonymous: bool,
    gateway: str = "",
) -> Fragment:
    """Return the consumer that an object makes, unless all of its credentials are wrong.

    Args:
        ref: the object.
        manifest: the object.
        context: of its translation.
        written: what recognises the consumer.
        plugins: of its requests.
        problems: of the object so far.
        is_anonymous: it is written without credentials, for `anonymous_consumer` of routes.
        gateway: that it is for, as the table has it; empty for none.
    """
    checked = (_check(one, problems) for one in written)
    credentials = tuple(one for one in checked if one is not None)
    labels = labels_of(manifest)
    group = labels.get(CONSUMER_GROUP, "")
    own = read_all(plugins, ref.namespace, context, problems)
    kind = as_text(manifest.get("kind"))
    place = "" if kind == APISIX_CONSUMER.kind else f"{kind}/"
    consumer = Consumer(
        key=f"{ref.cluster}/{ref.namespace}/{place}{ref.name}",
        name=f"{ref.namespace}_{ref.name}",
        group=group_name(ref.namespace, group) if group else "",
        labels=labels,
        credentials=credentials,
        plugins=own.closed,
        created_at=creation_time(manifest),
        is_scoped=context.settings.scoped_consumers,
        gateway=gateway,
        provenance=Provenance(cluster=ref.cluster, kind=kind, namespace=ref.namespace, name=ref.name),
    )
    is_made = bool(credentials) or is_anonymous
    return Fragment(
        identify(ref, manifest),
        entries=(consumer,) if is_made else (),
        backends=own.backends if is_made else (),
        problems=tuple(problem for problem in problems if not problem.field.endswith(".sealed")),
    )


def _check(written: WrittenCredential, problems: list[Problem]) -> Credential | None:
    use = PluginUse(name=written.plugin, config=written.config, secrets=written.secrets)
    try:
        check_credential(use)
    except PluginFault as fault:
        at = written.field + fault.field.removeprefix("config")
        problems.append(refuse("InvalidCredential", at, f"{written.plugin}: {fault.fault}"))
        return None
    return Credential(use=use, name=written.name)
