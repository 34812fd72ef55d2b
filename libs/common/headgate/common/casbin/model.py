"""A model: what a request and a policy line have, what roles there are, which effect decides, and the matcher."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Final

from headgate.common.casbin.errors import CasbinFault
from headgate.common.casbin.matcher import Matcher, Names, read_matcher

MAX_MODEL: Final = 16 << 10
"""Characters of a model."""
_SHOWN: Final = 60
_REQUEST_FIELDS: Final = 3
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_ROLES: Final = re.compile(r"_\s*,\s*_(?:\s*,\s*_)?")
_ROLE_NAME: Final = re.compile(r"g[2-9]?")
_SECTIONS: Final = {"request_definition": "r", "policy_definition": "p", "policy_effect": "e", "matchers": "m"}
_ROLE_SECTION: Final = "role_definition"


class Effect(Enum):
    """Which of the lines that match decides."""

    ALLOW_OVERRIDE = "some(where (p.eft == allow))"
    DENY_OVERRIDE = "!some(where (p.eft == deny))"
    ALLOW_AND_DENY = "some(where (p.eft == allow)) && !some(where (p.eft == deny))"
    PRIORITY = "priority(p.eft) || deny"


_EFFECTS: Final = {each.value.replace(" ", ""): each for each in Effect}


@dataclass(frozen=True, slots=True)
class Model:
    """A model that was read."""

    policy_fields: tuple[str, ...]
    roles: Mapping[str, int]
    """How many fields the lines of each role definition have: 2, or 3 with a domain."""
    effect: Effect
    matcher: Matcher


def read_model(text: str) -> Model:
    """Read a model. Raises CasbinFault."""
    if len(text) > MAX_MODEL:
        raise CasbinFault(f"a model must have at most {MAX_MODEL} characters, but has {len(text)}")
    sections = _read_sections(text)
    definitions: dict[str, str] = {}
    for section, option in _SECTIONS.items():
        definitions[option] = _only(sections, section, option)
    request, policy = _fields(definitions["r"], "r"), _fields(definitions["p"], "p")
    if len(request) != _REQUEST_FIELDS:
        raise CasbinFault(
            f"r must have three fields for subject, path and method, not {len(request)}: r = sub, obj, act"
        )
    roles = _read_roles(sections.get(_ROLE_SECTION, {}))
    effect = _EFFECTS.get(re.sub(r"\s|#.*", "", definitions["e"]))
    if effect is None:
        known = ", ".join(each.value for each in Effect)
        raise CasbinFault(f"e = {definitions['e'][:_SHOWN]} is no effect that is followed; there are {known}")
    return Model(policy, roles, effect, read_matcher(definitions["m"], Names(request, policy, roles)))


def _read_sections(text: str) -> dict[str, dict[str, str]]:
    sections: dict[str, dict[str, str]] = {}
    section = ""
    unfinished = ""
    for number, written in enumerate(text.splitlines(), 1):
        line = written.strip()
        if not line or line[0] in "#;":
            continue
        if line[0] == "[" and line[-1] == "]" and not unfinished:
            section = line[1:-1]
            if section not in _SECTIONS and section != _ROLE_SECTION:
                raise CasbinFault(f"line {number}: there is no section [{section[:_SHOWN]}]")
            continue
        line = unfinished + line
        if line.endswith("\\"):
            unfinished = line[:-1].rstrip() + " "
            continue
        unfinished = ""
        option, sign, value = line.partition("=")
        options = sections.setdefault(section, {})
        if not sign or not section or option.strip() in options:
            raise CasbinFault(f"line {number} is no definition of its own within a section: r = sub, obj, act")
        options[option.strip()] = value.strip()
    if unfinished:
        raise CasbinFault("the last line continues with \\ and has no rest")
    return sections


def _only(sections: Mapping[str, Mapping[str, str]], section: str, option: str) -> str:
    options = sections.get(section)
    if options is None:
        raise CasbinFault(f"a model of Casbin has a section [{section}]")
    for other in options:
        if other != option:
            raise CasbinFault(f"[{section}] defines {other[:_SHOWN]!r}, which is not followed; only {option} is")
    if not options.get(option):
        raise CasbinFault(f"[{section}] must define {option}")
    return options[option]


def _fields(value: str, option: str) -> tuple[str, ...]:
    fields = tuple(field.strip() for field in value.split(","))
    for field in fields:
        if not _NAME.fullmatch(field):
            raise CasbinFault(f"{option} has a field {field[:_SHOWN]!r}, which is no name: {option} = sub, obj, act")
    if len(set(fields)) < len(fields):
        raise CasbinFault(f"{option} has a field twice")
    return fields


def _read_roles(options: Mapping[str, str]) -> dict[str, int]:
    roles = {}
    for name, value in options.items():
        if not _ROLE_NAME.fullmatch(name) or not _ROLES.fullmatch(value):
            raise CasbinFault(
                f"[{_ROLE_SECTION}] {name[:_SHOWN]} = {value[:_SHOWN]} is not followed; "
                "roles are g to g9, each _, _ or with a domain _, _, _"
            )
        roles[name] = value.count("_")
    return roles
