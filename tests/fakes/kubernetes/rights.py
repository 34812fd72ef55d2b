"""Service accounts of the fake API server with a Role each, and nothing at the cluster scope.

    api.accounts["its token"] = RoleHolder.of(manifests_of_a_file)
    api.write_kubeconfig(path, user={"token": "its token"})

As on a real server everybody may ask what there is (discovery) and whether the server is well.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, Self

import yaml

from fakes.kubernetes.faults import SeenRequest

_FOR_ALL = ("discover", "probe")


class Right(NamedTuple):
    """A verb on a kind, narrowed to one name where that is not empty."""

    verb: str
    group: str
    resource: str
    """Plural; `*` for all, `*/status` for the subresource of all."""
    name: str = ""

    def covers(self, seen: SeenRequest, group: str) -> bool:
        """Whether it is the right to a request, if that is in the right's namespace."""
        resources = ("*", seen.resource, "*/" + seen.resource.partition("/")[2])
        return (
            (self.verb, self.group) == (seen.verb, group)
            and self.resource in resources
            and self.name in ("", seen.name)
        )


@dataclass
class RoleHolder:
    """Who has the rights of a Role in its namespace."""

    namespace: str
    rights: frozenset[Right]
    used: set[Right] = field(default_factory=set)
    refused: list[SeenRequest] = field(default_factory=list)
    outside: list[SeenRequest] = field(default_factory=list)
    """Requests about objects, or lists of them, that are not in the namespace; refused or not."""

    @classmethod
    def of(cls, path: Path, namespace: str) -> Self:
        """Read the Role in a file of manifests that were written for the namespace `team-a`."""
        manifests = yaml.safe_load_all(path.read_text().replace("team-a", namespace))
        (role,) = (each for each in manifests if each["kind"] == "Role")
        assert role["metadata"]["namespace"] == namespace
        return cls(namespace, frozenset(_rights(role["rules"])))

    def may(self, seen: SeenRequest) -> bool:
        """Whether a request is permitted; remembers it."""
        if seen.verb in _FOR_ALL:
            return True
        group = seen.path.split("/")[2] if seen.path.startswith("/apis/") else ""
        found = {right for right in self.rights if right.covers(seen, group)}
        if seen.namespace != self.namespace:
            self.outside.append(seen)
            found = set()
        self.used |= found
        if not found:
            self.refused.append(seen)
        return bool(found)


def _rights(rules: Sequence[Any]) -> list[Right]:
    return [
        Right(verb, group, resource, name)
        for rule in rules
        for verb in rule["verbs"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for name in rule.get("resourceNames", [""])
    ]
