"""A question of the API: its path, what can be asked, and who answers. The document of OpenAPI is made of these."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from headgate.console.live.view import LiveView
from headgate.operations.errors import InvalidRequest

DEFAULT_LIMIT: Final = 100
MAX_LIMIT: Final = 1000
MANIFESTS: Final = "manifests"
"""Name of the value that is the body of what was asked, bytes."""
Values = Mapping[str, Any]


@dataclass(frozen=True)
class Parameter:
    """Something that a question can be given."""

    name: str
    about: str
    """What it means, a sentence without a full stop."""
    kind: str = "string"
    """As JSON Schema calls it: `string`, `integer`, `number` or `boolean`."""
    default: Any = None
    choices: tuple[str, ...] = ()
    low: float | None = None
    high: float | None = None
    is_required: bool = False

    def read(self, text: str) -> Any:
        """Return a value. Raises InvalidRequest."""
        if self.kind == "string":
            if self.choices and text not in self.choices:
                raise InvalidRequest(f"{self.name}: {text!r} is none of {', '.join(self.choices)}")
            return text
        if self.kind == "boolean":
            if text not in ("true", "false"):
                raise InvalidRequest(f"{self.name}: {text!r} must be true or false")
            return text == "true"
        try:
            value = int(text) if self.kind == "integer" else float(text)
        except ValueError:
            raise InvalidRequest(f"{self.name}: {text!r} is not {self._what}") from None
        is_small = self.low is not None and not value >= self.low
        if is_small or (self.high is not None and not value <= self.high):
            raise InvalidRequest(f"{self.name}: must be {self._what} from {self.low:g} to {self.high:g}")
        return value

    @property
    def _what(self) -> str:
        return "a whole number" if self.kind == "integer" else "a number"

    @property
    def schema(self) -> dict[str, Any]:
        """JSON Schema of a value."""
        said = {"enum": list(self.choices) or None, "minimum": self.low, "maximum": self.high, "default": self.default}
        return {"type": self.kind, **{name: value for name, value in said.items() if value is not None}}


LIMIT: Final = Parameter("limit", "Greatest number of items", "integer", DEFAULT_LIMIT, low=1, high=MAX_LIMIT)
AFTER: Final = Parameter(
    "after", "How many items to pass over: `next` of the page before", "integer", 0, low=0, high=1e9
)


class Listing(NamedTuple):
    """Many items, of which a page is written."""

    items: Sequence[Any]
    write: Callable[[Any], Any]
    about: Mapping[str, Any] = {}
    """Fields beside the items."""
    is_whole: bool = True
    """Whether these are all; if not, how many there are is not known."""

    def page(self, values: Values) -> dict[str, Any]:
        """Return the page that is asked for."""
        after, limit = values["after"], values["limit"]
        shown = self.items[after : after + limit]
        end = after + len(shown)
        return {
            **self.about,
            "total": len(self.items) if self.is_whole else None,
            "next": end if end < len(self.items) else None,
            "items": [self.write(one) for one in shown],
        }


Answer = Callable[[LiveView, Values], Awaitable[Any]]


@dataclass(frozen=True)
class Question:
    """One path of the API."""

    path: str
    """Below `/api/v1`."""
    about: str
    """A sentence without a full stop."""
    answer: Answer | None = None
    """None: it is answered by events, as they come."""
    parameters: tuple[Parameter, ...] = ()
    is_list: bool = False
    by_revision: bool = False
    """Whether equal questions have equal answers as long as the revision is the same."""
    takes_manifests: bool = False
    """Whether it is posted, with manifests as its body."""
    command: str = ""
    """The same question on the command line."""

    @property
    def all_parameters(self) -> tuple[Parameter, ...]:
        """Those of pages too."""
        return (*self.parameters, LIMIT, AFTER) if self.is_list else self.parameters

    def read(self, query: Mapping[str, str]) -> dict[str, Any]:
        """Return the values that are asked with. Raises InvalidRequest for what the question does not have."""
        known = {one.name: one for one in self.all_parameters}
        for name in query:
            if name not in known:
                told = f"there are {', '.join(known)}" if known else "it has none"
                raise InvalidRequest(f"{self.path} has no parameter {name!r}; {told}")
        missing = [one.name for one in known.values() if one.is_required and not query.get(one.name)]
        if missing:
            raise InvalidRequest(f"{self.path} needs {', '.join(missing)}")
        return {name: one.read(query[name]) if name in query else one.default for name, one in known.items()}
