"""Which requests a route takes, as matches of an HTTPRoute."""

import re
from collections.abc import Iterator, Sequence
from typing import Final

from headgate.cli.converting.documents import NoEqual
from headgate.common.resources import JsonObject
from headgate.common.table import AllOf, AnyOf, Compare, Condition, Operator, PathMatch, PathType, Subject

MAX_MATCHES: Final = 64
"""Of one rule, as the definition of HTTPRoute has it."""
_ANYTHING: Final = ".*"
_SPECIAL: Final = re.compile(r"[\\.+*?()|\[\]{}^$]")
"""What means something in RE2; `re.escape` escapes more, which is hard to read."""


def matches_of(path: PathMatch, when: Condition | None) -> list[JsonObject]:
    """Return matches of which one takes exactly the requests that are meant.

    Raises:
        NoEqual: there are none such, or too many.
    """
    written = _path(path)
    found = [_match(written, each) for one in _alternatives(when) for each in _by_method(one)]
    if len(found) > MAX_MATCHES:
        raise NoEqual(f"a condition with {len(found)} alternatives, where a rule has {MAX_MATCHES} matches")
    return found


def _path(path: PathMatch) -> JsonObject:
    match path.type:
        case PathType.EXACT:
            return {"type": "Exact", "value": path.value}
        case PathType.PREFIX:
            return {"type": "PathPrefix", "value": path.value}
        case PathType.STRING_PREFIX if path.value == "/":
            return {"type": "PathPrefix", "value": "/"}
        case PathType.STRING_PREFIX:
            return {"type": "RegularExpression", "value": f"{quoted(path.value)}{_ANYTHING}"}
    if path.perl:
        raise NoEqual(f"the pattern {path.value}, which RE2 does not take")
    if path.decoded:
        raise NoEqual(f"the pattern {path.value}, which is compared with the decoded path")
    pattern = _to_its_end(path.value.removeprefix("^"))
    return {"type": "RegularExpression", "value": f"(?i){pattern}" if path.ignore_case else pattern}


def quoted(text: str) -> str:
    """Return a pattern that takes a text alone."""
    return _SPECIAL.sub(lambda found: f"\\{found[0]}", text)


def _to_its_end(pattern: str) -> str:
    """Return a pattern for whole texts from one that only has to take their beginning."""
    if "|" in pattern:
        return f"(?:{pattern}){_ANYTHING}"
    if pattern.endswith("$") and not pattern.endswith("\\$"):
        return pattern[:-1]
    return pattern if pattern.endswith((_ANYTHING, f"({_ANYTHING})")) else f"{pattern}{_ANYTHING}"


def _anywhere(pattern: str) -> str:
    """Return a pattern for whole texts from one that may be found anywhere in them."""
    if "|" in pattern:
        return f"{_ANYTHING}(?:{pattern}){_ANYTHING}"
    return _to_its_end(pattern[1:]) if pattern.startswith("^") else f"{_ANYTHING}{_to_its_end(pattern)}"


# Conditions


def _alternatives(when: Condition | None) -> list[tuple[Compare, ...]]:
    """Return sets of comparisons of which one has to be satisfied as a whole."""
    match when:
        case None:
            return [()]
        case Compare():
            return [(when,)]
        case AnyOf():
            return [each for part in when.any_of for each in _alternatives(part)]
        case AllOf():
            found: list[tuple[Compare, ...]] = [()]
            for part in when.all_of:
                found = [(*one, *other) for one in found for other in _alternatives(part)]
                if len(found) > MAX_MATCHES:
                    raise NoEqual(f"a condition with more than {MAX_MATCHES} alternatives")
            return found
    raise NoEqual("a condition that must not hold")


def _by_method(compares: tuple[Compare, ...]) -> Iterator[tuple[Compare, ...]]:
    """Yield a set for each method: a match has one."""
    several = next((one for one in compares if one.subject is Subject.METHOD and len(one.values) > 1), None)
    if several is None:
        yield compares
        return
    rest = tuple(one for one in compares if one is not several)
    for method in several.values:
        yield (*rest, several.model_copy(update={"values": (method,)}))


def _match(path: JsonObject, compares: Sequence[Compare]) -> JsonObject:
    said: JsonObject = {"path": path}
    for one in compares:
        match one.subject:
            case Subject.METHOD if one.operator is Operator.EQUALS and len(one.values) == 1 and "method" not in said:
                said["method"] = one.values[0]
            case Subject.HEADER:
                _add(said, "headers", one.name, _value(one))
            case Subject.QUERY:
                _add(said, "queryParams", one.name, _value(one))
            case Subject.COOKIE:
                _add(said, "headers", "Cookie", _cookie(one))
            case _:
                raise NoEqual(f"a condition on the {one.subject.value.replace('-', ' ')} ({_written(one)})")
    return said


def _add(said: JsonObject, field: str, name: str, value: JsonObject) -> None:
    """Add what is asked of a header or a parameter: of several for one name Gateway API looks at the first."""
    present = said.setdefault(field, [])
    if any(each["name"].lower() == name.lower() for each in present):
        raise NoEqual(f"two conditions on {name}")
    present.append({"name": name, **value})


def _value(one: Compare) -> JsonObject:
    if one.operator is Operator.EQUALS and len(one.values) == 1 and one.values[0] and not one.ignore_case:
        return {"value": one.values[0]}
    return {"type": "RegularExpression", "value": _pattern(one)}


def _cookie(one: Compare) -> JsonObject:
    return {"type": "RegularExpression", "value": f"(.*;\\s*)?{quoted(one.name)}={_pattern(one)}(;.*)?"}


def _pattern(one: Compare) -> str:
    """Return a pattern for all of a value."""
    flag = "(?i)" if one.ignore_case else ""
    texts = "|".join(map(quoted, one.values))
    some = f"(?:{texts})" if len(one.values) > 1 else texts
    match one.operator:
        case Operator.PRESENT:
            return _ANYTHING
        case Operator.EQUALS:
            return f"{flag}{some}"
        case Operator.PREFIX:
            return f"{flag}{some}{_ANYTHING}"
        case Operator.SUFFIX:
            return f"{flag}{_ANYTHING}{some}"
        case Operator.CONTAINS:
            return f"{flag}{_ANYTHING}{some}{_ANYTHING}"
        case Operator.REGEX:
            return f"{flag}{_anywhere('|'.join(one.values))}"
    raise NoEqual(f"a condition by numbers or networks ({_written(one)})")


def _written(one: Compare) -> str:
    name = f" {one.name}" if one.name else ""
    return f"{one.subject.value}{name} {one.operator.value} {', '.join(one.values)}".rstrip()
