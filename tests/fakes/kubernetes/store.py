"""What the fake API server keeps: objects, their versions, and the changes since the last compaction."""

import copy
import random
import string
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

JsonObject = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Resource:
    """A kind that the server has."""

    group: str
    resource: str
    kind: str
    namespaced: bool = True
    is_custom: bool = False
    """Lists of custom resources say of each item what it is; lists of built-in ones do not."""
    has_status: bool = True
    """Whether the definition has the status subresource."""


@dataclass(frozen=True, slots=True)
class Change:
    """One step of the store; `before` and `after` are None where the object was or is not there."""

    revision: int
    resource: Resource
    before: JsonObject | None
    after: JsonObject | None


class ApiFault(Exception):
    """An answer that is a Status object."""

    def __init__(self, code: int, reason: str, message: str, details: JsonObject | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.headers: dict[str, str] = {}
        self.body: JsonObject = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": message,
            **({"reason": reason} if reason else {}),
            **({"details": details} if details else {}),
            "code": code,
        }


_Key = tuple[str, str]
_FIRST_REVISION = 200


@dataclass
class Backup:
    """The state of a store at one time."""

    revision: int
    objects: dict[Resource, dict[_Key, JsonObject]]


@dataclass
class Store:
    """etcd and the registry in front of it, as far as clients can tell."""

    on_change: Callable[[], None]
    revision: int = _FIRST_REVISION
    compacted: int = 0
    changes: list[Change] = field(default_factory=list)
    objects: dict[Resource, dict[_Key, JsonObject]] = field(default_factory=dict)

    def select(self, resource: Resource, namespace: str) -> list[JsonObject]:
        """Return the objects of a kind in order of their keys; empty namespace: all."""
        held = self.objects.get(resource, {})
        return [held[key] for key in sorted(held) if not namespace or key[0] == namespace]

    def get(self, resource: Resource, namespace: str, name: str) -> JsonObject:
        try:
            return self.objects[resource][namespace, name]
        except KeyError:
            raise not_found(resource, name) from None

    def put(self, resource: Resource, wanted: JsonObject) -> JsonObject:
        """Create or replace; `status` of what exists stays, as it does without the subresource."""
        wanted = copy.deepcopy(wanted)
        metadata = wanted.setdefault("metadata", {})
        key = self._key(resource, metadata)
        before = self.objects.get(resource, {}).get(key)
        if before is None:
            created = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
            metadata |= {"uid": str(uuid.uuid4()), "generation": 1, "creationTimestamp": created}
        else:
            kept = before["metadata"]
            changed = any(before.get(name) != wanted.get(name) for name in (wanted.keys() | before) - _UNCOUNTED)
            metadata |= {name: kept[name] for name in ("uid", "creationTimestamp")}
            metadata["generation"] = kept["generation"] + changed
            if "status" in before:
                wanted["status"] = copy.deepcopy(before["status"])
        kept_fields = before["metadata"]["managedFields"][1:] if before else []
        metadata["managedFields"] = [{"manager": "fake", "operation": "Update", "fieldsType": "FieldsV1"}, *kept_fields]
        return self._commit(resource, key, before, wanted)

    def create(self, resource: Resource, wanted: JsonObject) -> JsonObject:
        wanted = copy.deepcopy(wanted)
        metadata = wanted.setdefault("metadata", {})
        if not metadata.get("name") and (start := metadata.get("generateName")):
            metadata["name"] = start + "".join(random.choices(string.ascii_lowercase + string.digits, k=5))
        if self._key(resource, metadata) in self.objects.get(resource, {}):
            text = f'{_qualified(resource)} "{metadata["name"]}" already exists'
            raise ApiFault(409, "AlreadyExists", text, _details(resource, metadata["name"]))
        return self.put(resource, wanted)

    def put_status(
        self, resource: Resource, namespace: str, name: str, wanted: JsonObject, manager: str = "unknown"
    ) -> JsonObject:
        """Write the status subresource; nothing else of `wanted` counts, and the generation stays."""
        before = self.get(resource, namespace, name)
        version = wanted.get("metadata", {}).get("resourceVersion")
        if version and version != before["metadata"]["resourceVersion"]:
            raise conflict(resource, name)
        after = copy.deepcopy(before)
        after["status"] = copy.deepcopy(wanted.get("status", {}))
        if after == before:
            return before
        # The addresses are an atomic list: it belongs to whoever changed it last.
        ours = {
            "manager": manager,
            "operation": "Update",
            "fieldsType": "FieldsV1",
            "fieldsV1": {"f:status": {"f:loadBalancer": {"f:ingress": {}}}},
            "subresource": "status",
        }
        after["metadata"]["managedFields"] = [after["metadata"]["managedFields"][0], ours]
        return self._commit(resource, (namespace, name), before, after)

    def delete(self, resource: Resource, namespace: str, name: str) -> JsonObject:
        before = self.get(resource, namespace, name)
        last = copy.deepcopy(before)
        self.revision += 1
        last["metadata"]["resourceVersion"] = str(self.revision)
        del self.objects[resource][namespace, name]
        self._record(Change(self.revision, resource, last, None))
        return last

    def since(self, revision: int, resource: Resource) -> Iterator[Change]:
        return (change for change in self.changes if change.revision > revision and change.resource == resource)

    def compact(self) -> None:
        """Forget how the present state came about."""
        self.compacted = self.revision
        self.changes.clear()

    def backup(self) -> Backup:
        return Backup(self.revision, copy.deepcopy(self.objects))

    def restore(self, backup: Backup) -> None:
        """Become what was, revision and all."""
        self.revision = self.compacted = backup.revision
        self.objects = copy.deepcopy(backup.objects)
        self.changes.clear()

    def _commit(self, resource: Resource, key: _Key, before: JsonObject | None, after: JsonObject) -> JsonObject:
        self.revision += 1
        after["metadata"]["resourceVersion"] = str(self.revision)
        self.objects.setdefault(resource, {})[key] = after
        self._record(Change(self.revision, resource, before, after))
        return after

    def _record(self, change: Change) -> None:
        self.changes.append(change)
        self.on_change()

    @staticmethod
    def _key(resource: Resource, metadata: JsonObject) -> _Key:
        if resource.namespaced:
            return metadata.setdefault("namespace", "default"), metadata["name"]
        return "", metadata["name"]


_UNCOUNTED = {"metadata", "status", "apiVersion", "kind"}


def _qualified(resource: Resource) -> str:
    return f"{resource.resource}.{resource.group}" if resource.group else resource.resource


def _details(resource: Resource, name: str) -> JsonObject:
    group = {"group": resource.group} if resource.group else {}
    return {"name": name, **group, "kind": resource.resource}


def not_found(resource: Resource, name: str) -> ApiFault:
    return ApiFault(404, "NotFound", f'{_qualified(resource)} "{name}" not found', _details(resource, name))


def conflict(resource: Resource, name: str) -> ApiFault:
    text = (
        f'Operation cannot be fulfilled on {_qualified(resource)} "{name}": the object has been modified; '
        "please apply your changes to the latest version and try again"
    )
    return ApiFault(409, "Conflict", text, _details(resource, name))


def expired(message: str) -> ApiFault:
    return ApiFault(410, "Expired", message)


def too_large(asked: int, current: int) -> ApiFault:
    fault = ApiFault(
        504,
        "Timeout",
        f"Timeout: Too large resource version: {asked}, current: {current}",
        {
            "causes": [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}],
            "retryAfterSeconds": 1,
        },
    )
    fault.headers["Retry-After"] = "1"
    return fault


def invalid(kind: str, group: str, name: str, field_path: str, message: str) -> ApiFault:
    cause = {"reason": "FieldValueInvalid", "message": message, "field": field_path}
    return ApiFault(
        422,
        "Invalid",
        f'{kind}{"." + group if group else ""} "{name}" is invalid: {field_path}: {message}',
        {"name": name, "group": group, "kind": kind, "causes": [cause]},
    )
