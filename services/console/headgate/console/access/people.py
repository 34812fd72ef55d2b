"""The people that a file names, each with a role and the digest of a token.

[[people]]
name = "ada"
role = "operator"       # or "viewer"
sha256 = "9f86d0…"      # of the token: printf %s "$TOKEN" | sha256sum
"""

import hashlib
import tomllib
from enum import StrEnum
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from headgate.common.errors import SettingsError


class Role(StrEnum):
    """What somebody may do."""

    VIEWER = "viewer"
    """Look at everything."""
    OPERATOR = "operator"
    """Change tables and clusters, too."""


class Person(NamedTuple):
    """Somebody who is in."""

    name: str
    role: Role

    @property
    def may_change(self) -> bool:
        """Whether they may change anything."""
        return self.role is Role.OPERATOR


class _Entry(BaseModel):
    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True)

    name: str = Field(min_length=1, max_length=128, pattern=r"^[^\x00-\x1f|]+$")
    role: Role = Role.VIEWER
    sha256: str = Field(pattern="^[0-9a-fA-F]{64}$")


class _File(BaseModel):
    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True)

    people: tuple[_Entry, ...] = Field(min_length=1)


class People:
    """Who may come in.

    Args:
        entries: persons by the SHA-256 of their tokens, in lower case.
    """

    def __init__(self, entries: dict[str, Person]) -> None:
        self._by_digest = entries

    def find(self, token: str) -> Person | None:
        """Return whose token it is. A digest is looked up, so that the time it takes tells nothing of tokens."""
        return self._by_digest.get(hashlib.sha256(token.encode(errors="surrogateescape")).hexdigest())

    def named(self, name: str) -> Person | None:
        """Return the person of a name: who was taken out of the file is out."""
        return next((one for one in self._by_digest.values() if one.name == name), None)


def read_people(path: Path) -> People:
    """Read a file.

    Raises:
        SettingsError: it cannot be read, or is not as it should be.
    """
    try:
        found = _File.model_validate(tomllib.loads(path.read_text(encoding="utf-8")))
    except OSError as error:
        raise SettingsError(f"console_people_file: {str(path)!r} cannot be read: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SettingsError(f"console_people_file: {str(path)!r} is not TOML: {error}") from error
    except ValidationError as error:
        raise SettingsError(f"console_people_file: {str(path)!r}: {_first(error.errors()[0])}") from None
    if len({one.name for one in found.people}) < len(found.people):
        raise SettingsError(f"console_people_file: {str(path)!r}: two people have one name")
    return People({one.sha256.lower(): Person(one.name, one.role) for one in found.people})


def _first(error: Any) -> str:
    return f"{'.'.join(map(str, error['loc']))}: {error['msg']}"
