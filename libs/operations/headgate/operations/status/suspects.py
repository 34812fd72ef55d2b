"""An object with problems, which may be why a request is not served as expected."""

from typing import NamedTuple

from headgate.common.problems import Problem
from headgate.common.resources import JsonObject


class Suspect(NamedTuple):
    """An object with problems."""

    kind: str
    namespace: str
    name: str
    manifest: JsonObject | None
    problems: tuple[Problem, ...]
    cluster: str = ""
    """Empty for a file."""
    file: str = ""
    line: int = 0

    def __str__(self) -> str:
        named = f"{self.kind} {self.namespace}/{self.name}" if self.namespace else f"{self.kind} {self.name}"
        return f"{named} in {self.cluster}" if self.cluster else named
