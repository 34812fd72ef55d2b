"""A policy: the lines of `p`, in the order in which they are judged, and the roles of `g`."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from headgate.common.casbin.errors import CasbinFault
from headgate.common.casbin.model import Model
from headgate.common.casbin.roles import RoleGraph

MAX_POLICY: Final = 128 << 10
"""Characters of a policy."""
MAX_LINES: Final = 5_000
"""Lines of `p` and `g` together."""
MAX_STEPS: Final = 100_000
"""Lines of `p` times nodes of the matcher: what one decision may have to look at."""
_SEPARATOR: Final = re.compile(r"[,\[\]()]")
_KEY: Final = re.compile(r"p|g[2-9]?")
_PRIORITY: Final = re.compile(r"-?[0-9]{1,9}")


@dataclass(frozen=True, slots=True)
class Rule:
    """One line of `p`."""

    values: tuple[str, ...]
    effect: str
    """`allow`, `deny`, or another word, with which the line says nothing."""


@dataclass(frozen=True, slots=True)
class Policy:
    """A policy that was read."""

    rules: tuple[Rule, ...]
    roles: Mapping[str, RoleGraph]


def read_policy(text: str, model: Model) -> Policy:
    """Read a policy. Raises CasbinFault."""
    if len(text) > MAX_POLICY:
        raise CasbinFault(f"a policy must have at most {MAX_POLICY} characters, but has {len(text)}")
    if not text:
        raise CasbinFault("a policy must not be empty; one without rules has a comment: # no rules")
    rules: list[tuple[str, ...]] = []
    links: dict[str, list[tuple[str, ...]]] = {name: [] for name in model.roles}
    for number, line in enumerate(text.splitlines(), 1):
        key, *values = _split(line.strip(), number)
        if key == "p":
            _check_count(values, len(model.policy_fields), number, "p")
            rules.append(tuple(values))
        elif key:
            if key not in links:
                raise CasbinFault(f"line {number}: the model's [role_definition] defines no {key}")
            _check_count(values, model.roles[key], number, key)
            links[key].append(tuple(values))
    count = len(rules) + sum(map(len, links.values()))
    if count > MAX_LINES:
        raise CasbinFault(f"a policy must have at most {MAX_LINES} lines, but has {count}")
    if len(rules) * model.matcher.size > MAX_STEPS:
        raise CasbinFault(
            f"{len(rules)} lines of p, each compared by a matcher of {model.matcher.size} parts, are too much for one "
            f"request: together at most {MAX_STEPS}"
        )
    return Policy(_ordered(rules, model), {name: RoleGraph(lines) for name, lines in links.items()})


def _split(line: str, number: int) -> list[str]:
    """Split a line at its commas; those within brackets belong to a value."""
    if not line or line.startswith("#"):
        return [""]
    parts, depth, begin = [], 0, 0
    for found in _SEPARATOR.finditer(line):
        if found[0] in "[(":
            depth += 1
        elif found[0] in "])":
            depth -= 1
            if depth < 0:
                raise CasbinFault(f"line {number} has a closing bracket too many")
        elif not depth:
            parts.append(line[begin : found.start()].strip())
            begin = found.end()
    if depth:
        raise CasbinFault(f"line {number} has a bracket that is not closed")
    parts.append(line[begin:].strip())
    if not _KEY.fullmatch(parts[0]) or len(parts) < 2:
        raise CasbinFault(f"line {number} is no rule of Casbin: p, alice, /orders/*, GET")
    return parts


def _check_count(values: list[str], expected: int, number: int, key: str) -> None:
    if len(values) != expected:
        raise CasbinFault(f"line {number} has {len(values)} values behind {key}, where the model has {expected}")


def _ordered(rules: list[tuple[str, ...]], model: Model) -> tuple[Rule, ...]:
    fields = model.policy_fields
    if "priority" in fields:
        at = fields.index("priority")
        for values in rules:
            if not _PRIORITY.fullmatch(values[at]):
                raise CasbinFault(f"the priority {values[at][:20]!r} is no whole number")
        rules = sorted(rules, key=lambda values: int(values[at]))
    effect = fields.index("eft") if "eft" in fields else -1
    return tuple(Rule(values, values[effect] if effect >= 0 else "allow") for values in rules)
