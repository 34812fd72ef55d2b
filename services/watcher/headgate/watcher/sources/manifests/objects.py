"""One document of a manifest as the API server would store it, or why it would not.

Only what needs no schema is checked here: that the object can be named, that its metadata has the right types, that
it fits on the bus. What its spec means is the translator's business.
"""

import base64
import hashlib
import re
import uuid
from dataclasses import dataclass
from typing import Any

import msgspec

from headgate.common.problems import Problem
from headgate.common.resources import SECRET, JsonObject, Kinds, ResourceKind, WatchMode
from headgate.watcher.objects.preparing import MAX_OBJECT_BYTES, encode, is_sealed, strip
from headgate.watcher.objects.secrets import decode_value

MAX_ANNOTATION_BYTES = 256 * 1024
"""Keys and values of all annotations together, as the API server allows."""

UID_NAMESPACE = uuid.UUID("5c0c3a1e-6f0b-5d7e-9a55-6c9a7d8e4f21")
_NAMESPACE_BYTES = UID_NAMESPACE.bytes
_VARIANT = {digit: "89ab"[place % 4] for place, digit in enumerate("0123456789abcdef")}
"""The first digit of a UUID's fourth part, whose two upper bits are those of the variant, by what was hashed."""
_LABEL = re.compile(r"[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?")
_SUBDOMAIN = re.compile(r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*")
_MAX_SUBDOMAIN = 253
_SHOWN = 120


class BadObject(Exception):
    """The document cannot be an object; `problem` says why."""

    def __init__(self, reason: str, field: str, message: str, value: object = None) -> None:
        super().__init__(message)
        shown = None if value is None else _shown(value)
        self.problem = Problem(reason=reason, field=field, value=shown, message=message)


@dataclass(frozen=True, slots=True)
class Versioner:
    """Gives objects from disk what an API server would give them: `uid` and `resourceVersion`."""

    cluster: str
    key: bytes
    """Keeps the versions of Secrets from betraying their values; at most 64 bytes."""

    def stamp(self, kind: ResourceKind, manifest: JsonObject) -> JsonObject:
        """Return the stripped object with a uid made from its name and a version made from its content.

        Raises:
            BadObject: it is too large, or is not text that can be sent.
        """
        stripped = strip(kind, manifest)
        metadata: JsonObject = stripped["metadata"]
        metadata.pop("uid", None)
        metadata.pop("resourceVersion", None)
        content = _encode(stripped)
        key = self.key if is_sealed(kind) else b""
        metadata["uid"] = uid_of(f"{self.cluster}/{kind}/{metadata.get('namespace', '')}/{metadata['name']}")
        metadata["resourceVersion"] = hashlib.blake2b(content, digest_size=10, key=key).hexdigest()
        return stripped


def uid_of(name: str) -> str:
    """Return the UUID of a name, of version 5 (RFC 9562, section 5.5); `uuid.uuid5` takes three times as long."""
    digits = hashlib.sha1(_NAMESPACE_BYTES + name.encode(), usedforsecurity=False).hexdigest()
    return f"{digits[:8]}-{digits[8:12]}-5{digits[13:16]}-{_VARIANT[digits[16]]}{digits[17:20]}-{digits[20:32]}"


def _encode(manifest: JsonObject) -> bytes:
    try:
        content = encode(manifest)
    except (msgspec.EncodeError, UnicodeEncodeError, RecursionError, OverflowError):
        raise BadObject("InvalidText", "", "holds text that is not Unicode or cannot be written as JSON") from None
    if len(content) > MAX_OBJECT_BYTES:
        raise BadObject(
            "TooLarge", "", f"{len(content)} bytes as JSON; the bus carries objects of up to {MAX_OBJECT_BYTES} bytes"
        )
    return content


def describe(value: object) -> str:
    """Name a document as far as it names itself: `Ingress default/web`."""
    if not isinstance(value, dict):
        return "document"
    metadata = value.get("metadata")
    metadata = metadata if isinstance(metadata, dict) else {}
    names = [_shown(metadata[part]) for part in ("namespace", "name") if metadata.get(part) is not None]
    return " ".join((_shown(value.get("kind") or "object"), "/".join(names))).strip()


def list_items(value: JsonObject) -> list[Any] | None:
    """Return the items if the document is a List (`List`, `IngressList`), else None.

    Items of a typed list may leave out what the list says already.
    """
    kind, items = value.get("kind"), value.get("items")
    if not isinstance(kind, str) or not kind.endswith("List") or not (isinstance(items, list) or items is None):
        return None
    if kind == "List":
        return items or []
    inherited = {"apiVersion": value.get("apiVersion"), "kind": kind.removesuffix("List")}
    return [{**inherited, **item} if isinstance(item, dict) else item for item in items or []]


def read_object(value: object, versioner: Versioner, kinds: Kinds) -> tuple[ResourceKind, JsonObject] | None:
    """Return the object that a document describes, complete and with its defaults.

    Returns:
        None if it is of a kind that we do not read.

    Raises:
        BadObject: the API server, or the bus, would not take it.
    """
    if not isinstance(value, dict):
        raise BadObject("NotAnObject", "", f"is {_json_type(value)}, not a mapping with apiVersion and kind")
    api_version, kind_name = _text(value, "apiVersion"), _text(value, "kind")
    group, _, version = api_version.rpartition("/")
    kind = kinds.named(group, kind_name)
    if kind is None or kind.watch is WatchMode.NEVER:
        return None
    if version not in kind.versions:
        known = " or ".join(f"{group}/{one}".lstrip("/") for one in kind.versions)
        raise BadObject("UnknownVersion", "apiVersion", f"{kind_name} is read as {known}", api_version)
    manifest: JsonObject = {**value, "metadata": _metadata(kind, value.get("metadata"))}
    if kind == SECRET:
        manifest = _merge_string_data(manifest)
    return kind, versioner.stamp(kind, manifest)


def _text(value: JsonObject, name: str) -> str:
    text = value.get(name)
    if text is None or text == "":
        raise BadObject("MissingField", name, "missing: every object needs it")
    if not isinstance(text, str):
        raise BadObject("InvalidType", name, f"must be text, not {_json_type(text)}", text)
    return text


def _metadata(kind: ResourceKind, metadata: object) -> JsonObject:
    if not isinstance(metadata, dict):
        raise BadObject("MissingField", "metadata.name", "missing: every object needs a name")
    name, namespace = metadata.get("name"), metadata.get("namespace")
    if name is None or name == "":
        hint = " (generateName needs an API server)" if metadata.get("generateName") else ""
        raise BadObject("MissingField", "metadata.name", f"missing: every object needs a name{hint}")
    _check_name("metadata.name", name, is_label=kind.has_label_name)
    annotations, labels = metadata.get("annotations"), metadata.get("labels")
    if annotations is not None:
        _check_texts("metadata.annotations", annotations)
        _check_annotations_size(annotations)
    if labels is not None:
        _check_texts("metadata.labels", labels)
    kept = {key: value for key, value in metadata.items() if key != "namespace" and value is not None}
    if kind.namespaced:
        kept["namespace"] = "default" if namespace is None or namespace == "" else namespace
        _check_name("metadata.namespace", kept["namespace"], is_label=True)
    return kept


def _check_name(field: str, name: object, *, is_label: bool) -> None:
    if not isinstance(name, str):
        raise BadObject(
            "InvalidType", field, f"must be text, but without quotes YAML reads it as {_json_type(name)}", name
        )
    if is_label and not _LABEL.fullmatch(name):
        rule = "a DNS label: at most 63 of a-z, 0-9 and -, beginning and ending with a letter or digit"
    elif not is_label and (len(name) > _MAX_SUBDOMAIN or not _SUBDOMAIN.fullmatch(name)):
        rule = "a DNS name: at most 253 of a-z, 0-9, - and ., each part beginning and ending with a letter or digit"
    else:
        return
    raise BadObject("InvalidName", field, f"must be {rule}", name)


def _check_texts(field: str, values: object) -> None:
    if not isinstance(values, dict):
        raise BadObject("InvalidType", field, f"must be a mapping of text to text, not {_json_type(values)}")
    for name, value in values.items():
        if not isinstance(value, str):
            message = f"must be text: put quotes around it, as YAML reads it as {_json_type(value)}"
            raise BadObject("InvalidType", f"{field}[{name}]"[:_SHOWN], message, value)


def _check_annotations_size(annotations: dict[str, str]) -> None:
    size = sum(
        len(name.encode(errors="replace")) + len(text.encode(errors="replace")) for name, text in annotations.items()
    )
    if size > MAX_ANNOTATION_BYTES:
        message = f"{size} bytes of annotations; an API server takes {MAX_ANNOTATION_BYTES} for all of an object"
        raise BadObject("TooLarge", "metadata.annotations", message)


def _merge_string_data(secret: JsonObject) -> JsonObject:
    """Do what the API server does with `stringData`: encode it over `data`, then forget it."""
    data = dict(_mapping(secret, "data"))
    for name, text in data.items():
        try:
            decode_value(text if text is not None else "")
        except ValueError:
            raise BadObject("InvalidBase64", f"data[{name}]", "must be base64 (stringData takes text)", "***") from None
    for name, text in _mapping(secret, "stringData").items():
        if not isinstance(text, str):
            message = f"must be text: put quotes around it, as YAML reads it as {_json_type(text)}"
            raise BadObject("InvalidType", f"stringData[{name}]", message, "***")
        data[name] = base64.b64encode(text.encode(errors="surrogatepass")).decode()
    merged = {name: value for name, value in secret.items() if name not in ("data", "stringData")}
    return {**merged, "type": secret.get("type") or "Opaque", "data": {k: v or "" for k, v in data.items()}}


def _mapping(secret: JsonObject, field: str) -> JsonObject:
    values = secret.get(field)
    if values is not None and not isinstance(values, dict):
        raise BadObject("InvalidType", field, f"must be a mapping, not {_json_type(values)}", "***")
    return values or {}


def _shown(value: object) -> str:
    """Write a value as YAML has it, not as Python does."""
    return (str(value).lower() if isinstance(value, bool) else str(value))[:_SHOWN]


def _json_type(value: object) -> str:
    match value:
        case bool():
            return f"the boolean {str(value).lower()}"
        case int() | float():
            return "a number"
        case None:
            return "null"
        case str():
            return "text"
        case dict():
            return "a mapping"
        case _:
            return "a list"
