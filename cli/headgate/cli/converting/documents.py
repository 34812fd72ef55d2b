"""What is written: manifests, each with what has no equal in it."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

import yaml

from headgate.common.resources import GATEWAY_GROUP, JsonObject

GATEWAY_API: Final = f"{GATEWAY_GROUP}/v1"
_WIDTH: Final = 118


class NoEqual(ValueError):
    """Gateway API has no word for it; the text says for what."""


@dataclass
class Document:
    """A manifest that is written."""

    manifest: JsonObject
    remarks: list[str] = field(default_factory=list)
    """What of the objects that it is made of it does not say, each a line."""

    @property
    def place(self) -> tuple[str, str, str]:
        """Kind, namespace and name."""
        metadata = self.manifest["metadata"]
        return self.manifest["kind"], metadata.get("namespace", ""), metadata["name"]

    def remark(self, text: str) -> None:
        """Add a remark, once."""
        if text not in self.remarks:
            self.remarks.append(text)


def manifest(api_version: str, kind: str, namespace: str, name: str, spec: JsonObject) -> JsonObject:
    """Return a manifest."""
    metadata = {"name": name, "namespace": namespace} if namespace else {"name": name}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, "spec": spec}


def as_yaml(documents: Iterable[Document]) -> str:
    """Return documents as YAML, each behind its remarks as comments."""
    return "---\n".join("".join(_lines(one)) for one in documents)


def _lines(document: Document) -> Iterator[str]:
    for remark in document.remarks:
        yield f"# {remark}\n"
    yield yaml.dump(document.manifest, Dumper=_Indented, sort_keys=False, width=_WIDTH, allow_unicode=True)


class _Indented(yaml.SafeDumper):
    """Indents lists below their keys, and repeats what stands twice instead of pointing at it."""

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> Any:
        """Never leave a list at the column of its key."""
        return super().increase_indent(flow, indentless=False)

    def ignore_aliases(self, data: Any) -> bool:
        """Write no anchors."""
        return True
