"""Parts of a manifest read into models although some of their fields have the wrong type.

A model takes or refuses a value as a whole. Where one wrong field must not cost the others, as in the rules of an
Ingress, the wrong ones are left out and the rest is read. null and an absent field are the same, as in the Kubernetes
API.

Rejected: reading field by field with a cursor, which takes half as long again for objects without a mistake.
"""

import re
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic.alias_generators import to_camel

from headgate.common.problems import Problem
from headgate.common.resources import JsonObject
from headgate.translator.manifests.reading import shown, type_name

_STEP = re.compile(r"\.([^.\[]+)|\[(\d+)\]")
Location = tuple[int | str, ...]


class Shape(BaseModel):
    """Base of such models. Every field may be absent; whether its value can be used is checked afterwards."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", alias_generator=to_camel, hide_input_in_errors=True, defer_build=True
    )


S = TypeVar("S", bound=Shape)


class ShapeReader:
    """Reads one object of a manifest, and notes what is wrong in it."""

    def __init__(self, value: JsonObject, at: str, problems: list[Problem]) -> None:
        """Take an object that stands at a path such as `spec`; mistakes go to `problems`."""
        self._value = value
        self._at = at
        self._problems = problems
        self._wrong: frozenset[str] = frozenset()
        self.is_clean = True
        """Whether `read` met no field that has the wrong type, and none that no model has."""

    def read(self, model: type[S]) -> S:
        """Return the object as far as its fields have the right types; others count as absent."""
        try:
            return model.model_validate(self._value)
        except ValidationError as error:
            errors = error.errors(include_url=False, include_input=False)
        unknown = {each["loc"] for each in errors if each["type"] == "extra_forbidden"}
        wrong = {each["loc"] for each in errors} - unknown
        self.is_clean = False
        self._wrong = frozenset(self._at + path_of(location) for location in wrong)
        return model.model_validate(_without(self._value, unknown | wrong))

    def is_wrong(self, field: str) -> bool:
        """Whether a field that counts as absent has the wrong type."""
        return field in self._wrong

    def refuse_wrong(self, field: str, wanted: str) -> bool:
        """Note a field that counts as absent if it has the wrong type; return whether it has."""
        if field not in self._wrong:
            return False
        self.refuse("WrongType", field, f"must be {wanted}, but is {type_name(self._written(field))}")
        return True

    def refuse(self, reason: str, field: str, message: str) -> None:
        """Note that what stands at a field is wrong."""
        written = self._written(field)
        value = None if written is None else shown(written)
        self._problems.append(Problem(reason=reason, field=field, value=value, message=message))

    def _written(self, field: str) -> Any:
        steps = _STEP.findall(field.removeprefix(self._at))
        return value_at(self._value, tuple(int(position) if position else name for name, position in steps))


def path_of(location: Location) -> str:
    """Return a location as a path: `.rules[0].host`."""
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in location)


def value_at(value: Any, location: Location) -> Any:
    """Return what stands at a location; None where nothing does."""
    for step in location:
        if isinstance(value, list) and isinstance(step, int) and step < len(value):
            value = value[step]
        elif isinstance(value, dict):
            value = value.get(step)
        else:
            return None
    return value


def _without(value: Any, locations: set[Location], here: Location = ()) -> Any:
    """Return a copy without the values at some locations; in lists null takes their place."""
    if isinstance(value, dict):
        kept = ((name, member, (*here, name)) for name, member in value.items())
        return {name: _without(member, locations, there) for name, member, there in kept if there not in locations}
    if isinstance(value, list):
        places = ((member, (*here, position)) for position, member in enumerate(value))
        return [None if there in locations else _without(member, locations, there) for member, there in places]
    return value
