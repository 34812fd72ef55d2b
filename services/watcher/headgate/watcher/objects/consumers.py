"""ApisixConsumers and Consumers on their way to the log: what identifies one is sealed, as values of Secrets are."""

from typing import Any

from headgate.common.plugins.credentials import CREDENTIALS
from headgate.common.plugins.hiding import secret_fields
from headgate.common.resources import JsonObject
from headgate.common.sealing import Purpose, Sealer

_PLUGINS = {
    "keyAuth": "key-auth",
    "basicAuth": "basic-auth",
    "jwtAuth": "jwt-auth",
    "wolfRBAC": "wolf-rbac",
    "hmacAuth": "hmac-auth",
    "ldapAuth": "ldap-auth",
}
_NEVER_READ = frozenset({"private_key"})
"""Needed to make tokens, which no service here does."""


def seal_consumer(manifest: JsonObject, sealer: Sealer) -> JsonObject:
    """Return an ApisixConsumer or a Consumer with its secrets under `sealed`, beside the `value` or `config` that they
    were in.
    """
    spec = manifest.get("spec")
    if not isinstance(spec, dict):
        return manifest
    sealed = dict(spec)
    parameters = spec.get("authParameter")
    if isinstance(parameters, dict):
        sealed["authParameter"] = {
            name: _seal(one, "value", _PLUGINS.get(name, ""), sealer) for name, one in parameters.items()
        }
    plugins = spec.get("plugins")
    if isinstance(plugins, list):
        sealed["plugins"] = [_seal(one, "config", _name(one), sealer) for one in plugins]
    credentials = spec.get("credentials")
    if isinstance(credentials, list):
        sealed["credentials"] = [_seal_credential(one, sealer) for one in credentials]
    return {**manifest, "spec": sealed}


def _seal_credential(credential: Any, sealer: Sealer) -> Any:
    """Seal a credential of a Consumer. Of one that is of no known type, all may be secret."""
    if not isinstance(credential, dict) or credential.get("config") is None:
        return credential
    plugin = str(credential.get("type"))
    if plugin in CREDENTIALS and isinstance(credential["config"], dict):
        return _seal(credential, "config", plugin, sealer)
    return {**credential, "config": {}}


def _name(plugin: Any) -> str:
    return str(plugin.get("name")) if isinstance(plugin, dict) else ""


def _seal(holder: Any, part: str, plugin: str, sealer: Sealer) -> Any:
    values = holder.get(part) if isinstance(holder, dict) else None
    model = CREDENTIALS.get(plugin)
    if not isinstance(values, dict) or model is None:
        return holder
    secret = {
        name for name in secret_fields(model) if isinstance(values.get(name), str | int | float) and values[name] != ""
    }
    kept = {name: value for name, value in values.items() if name not in secret | _NEVER_READ}
    sealed = {name: sealer.seal(str(values[name]).encode(), Purpose.CREDENTIAL) for name in sorted(secret)}
    return {**holder, part: kept, "sealed": {name: one.model_dump(mode="json") for name, one in sealed.items()}}
