"""Label selectors as kubectl takes them, applied to labels: which objects are watched is decided by the API server
elsewhere, and has to be known before an object is there.

https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/#label-selectors
"""

import re
from collections.abc import Callable, Mapping

Labels = Mapping[str, str]
Selector = Callable[[Labels], bool]

_COMMA = re.compile(r",(?![^(]*\))")
_REQUIREMENT = re.compile(
    r"\s*(?:!\s*(?P<absent>[^\s!=<>]+)"
    r"|(?P<key>[^\s!=<>]+)\s*(?P<operator>==|=|!=|<|>|\bin\b|\bnotin\b)?\s*(?P<operand>\([^)]*\)|[^\s()]*))\s*"
)


def parse_selector(text: str) -> Selector:
    """Return what tells whether labels are selected; the text is one that the settings accept, empty for all."""
    requirements = [_parse(part) for part in _COMMA.split(text)] if text.strip() else []
    return lambda labels: all(requirement(labels) for requirement in requirements)


def _parse(text: str) -> Selector:
    found = _REQUIREMENT.fullmatch(text)
    assert found is not None, text
    absent, key, operator, operand = found.group("absent", "key", "operator", "operand")
    if absent:
        return lambda labels: absent not in labels
    if operator in ("<", ">"):
        return _compares(key, operator == ">", int(operand))
    if operator is None:
        return lambda labels: key in labels
    values = {value.strip() for value in operand.strip("()").split(",")}
    if operator in ("!=", "notin"):
        return lambda labels: labels.get(key) not in values
    return lambda labels: labels.get(key) in values


def _compares(key: str, is_greater: bool, bound: int) -> Selector:
    def selects(labels: Labels) -> bool:
        value = labels.get(key, "")
        return re.fullmatch(r"-?[0-9]{1,18}", value) is not None and (
            int(value) > bound if is_greater else int(value) < bound
        )

    return selects
