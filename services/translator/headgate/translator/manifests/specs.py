"""Parts of a manifest read into models, every mistake a `Problem` at its field.

A model takes or refuses what it is given as a whole, so what can be refused apart from the rest (a rule, a port's
settings) is read apart from it: `Spec.each`.
"""

import json
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, Generic, NamedTuple, TypeVar

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from headgate.common.problems import Problem, Severity
from headgate.translator.manifests.models import Model
from headgate.translator.manifests.reading import shown, type_name, unknown_field
from headgate.translator.manifests.shapes import path_of, value_at

M = TypeVar("M", bound=Model)
_PRIVATE = frozenset({"config", "value", "sealed"})
"""Parts of objects whose values may be secrets."""
_TYPES = {
    "string_type": "a string",
    "int_type": "a whole number",
    "int_parsing": "a whole number",
    "int_from_float": "a whole number",
    "bool_type": "true or false",
    "bool_parsing": "true or false",
    "tuple_type": "a list",
    "list_type": "a list",
    "dict_type": "an object",
    "model_type": "an object",
    "model_attributes_type": "an object",
}


class Part(NamedTuple, Generic[M]):
    """A part that could be read, and where it stands."""

    value: M
    field: str


class Spec:
    """The spec of one object."""

    def __init__(self, value: Any, problems: list[Problem]) -> None:
        """Take what stands under `spec`; mistakes go to `problems`."""
        self._problems = problems
        self._value: dict[str, Any] = value if isinstance(value, dict) else {}
        if not isinstance(value, dict):
            problems.append(wrong_type("spec", value, "an object"))

    def each(self, name: str, model: type[M]) -> list[Part[M]]:
        """Read the elements of a list one by one; one that cannot be read costs itself."""
        value = self._value.get(name)
        if value is None:
            return []
        if not isinstance(value, list):
            self._problems.append(wrong_type(f"spec.{name}", value, "a list"))
            return []
        read = ((read_part(model, one, f"spec.{name}[{index}]", self._problems)) for index, one in enumerate(value))
        return [part for part in read if part is not None]

    def rest(self, model: type[M], *without: str) -> M | None:
        """Read all but some of the fields."""
        left = {name: value for name, value in self._value.items() if name not in without}
        part = read_part(model, left, "spec", self._problems)
        return None if part is None else part.value


def read_part(model: type[M], value: Any, field: str, problems: list[Problem]) -> Part[M] | None:
    """Read one part; mistakes go to `problems`. Fields that there are not are warned of."""
    try:
        found = model.model_validate(value)
    except ValidationError as error:
        errors = error.errors(include_url=False)
        wrong = {each["loc"][:depth] for each in errors for depth in range(len(each["loc"]))}
        # A list of which an element is wrong is not too short as well.
        told = (each for each in errors if each["type"] != "too_short" or each["loc"] not in wrong)
        problems += [_problem(each, value, field) for each in told]
        return None
    problems += _unknown(found, field)
    return Part(found, field)


def _problem(error: ErrorDetails, whole: Any, field: str) -> Problem:
    at = f"{field}{path_of(error['loc'])}"
    if error["type"] == "missing":
        return Problem(reason="Required", field=at, message="must be given")
    is_private = bool(_PRIVATE & set(map(str, error["loc"])))
    written = value_at(whole, error["loc"])
    value = None if error["loc"] == () else "***" if is_private else shown(written)
    message = _told(error, written)
    if error["type"] not in _TYPES and not is_private and isinstance(written, str | int | float) and written != "":
        message = f"{message}, but is {shown(json.dumps(written))}"
    return Problem(reason="InvalidValue", field=at, value=value, message=message)


def _told(error: ErrorDetails, written: Any) -> str:
    kind, context = error["type"], error.get("ctx", {})
    if kind in _TYPES:
        return f"must be {_TYPES[kind]}, but is {type_name(written)}"
    if kind == "too_short":
        return "must have at least one element"
    if kind == "too_long":
        return f"must have at most {context['max_length']} elements"
    if kind == "string_too_short":
        return "must not be empty"
    if kind == "literal_error":
        return f"must be {context['expected']}"
    if kind == "string_pattern_mismatch":
        return f"must match {context['pattern']}"
    text = error["msg"].removeprefix("Value error, ")
    return f"must be {text.removeprefix('Input should be ')}" if text.startswith("Input should be ") else text


def wrong_type(field: str, value: Any, wanted: str) -> Problem:
    """Return the problem of a field that must be there, and has the wrong type or is absent."""
    if value is None:
        return Problem(reason="Required", field=field, message=f"must be given: {wanted}")
    return Problem(
        reason="WrongType", field=field, value=shown(value), message=f"must be {wanted}, but is {type_name(value)}"
    )


def _unknown(model: BaseModel, at: str) -> Iterator[Problem]:
    """Yield the fields that no model has: they are ignored, and their author believes otherwise."""
    fields = _written_names(type(model))
    for name, value in (model.model_extra or {}).items():
        yield unknown_field(name, "***" if at.endswith(".value") else value, list(fields.values()), at)
    given = model.model_fields_set
    for name, written in fields.items():
        if name not in given:
            continue
        value = getattr(model, name)
        if isinstance(value, BaseModel):
            yield from _unknown(value, f"{at}.{written}")
        elif isinstance(value, tuple):
            for index, member in enumerate(value):
                if isinstance(member, BaseModel):
                    yield from _unknown(member, f"{at}.{written}[{index}]")


@cache
def _written_names(model: type[BaseModel]) -> Mapping[str, str]:
    """Return the names of a model's fields, and how they are written."""
    return {name: info.alias or name for name, info in model.model_fields.items()}


def warn(reason: str, field: str, message: str, value: object = None) -> Problem:
    """Return a problem of something that is served, but not as its author may expect."""
    shown_value = None if value is None else shown(value)
    return Problem(severity=Severity.WARNING, reason=reason, field=field, value=shown_value, message=message)


def refuse(reason: str, field: str, message: str, value: object = None) -> Problem:
    """Return a problem of something that is not served."""
    return Problem(reason=reason, field=field, value=None if value is None else shown(value), message=message)
