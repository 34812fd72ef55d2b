"""The people that a file names, each with a role and the digest of a token.

[[people]]
name = "ada"
role = "operator"       # or "viewer"
sha256 = "9f86d0…"      # of the token: printf %s "$TOKEN" | sha256sum
"""

import hashlib
import logging
import time
import tomllib
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import Any, Final, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from headgate.common.errors import SettingsError

LOOK_S: Final = 1.0
"""Between two looks whether the file was changed."""
_log = logging.getLogger(__name__)


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
    """Who may come in, as a file says it: it is looked at again each second.

    Args:
        path: of the file.
        clock: seconds.

    Raises:
        SettingsError: it cannot be read, or is not as it should be. Later on such a file changes nothing.
    """

    def __init__(self, path: Path, clock: Callable[[], float] = time.monotonic) -> None:
        self._path, self._clock = path, clock
        self._mark, self._looked_at = _mark(path), clock()
        self._people = _read(path)

    @property
    def _by_digest(self) -> dict[str, Person]:
        """Persons by the SHA-256 of their tokens, in lower case."""
        if self._clock() - self._looked_at >= LOOK_S:
            self._looked_at = self._clock()
            if (mark := _mark(self._path)) != self._mark:
                self._mark = mark
                self._read_again()
        return self._people

    def _read_again(self) -> None:
        try:
            self._people = _read(self._path)
        except SettingsError as error:
            _log.warning("who may come in stays as it was", extra={"reason": str(error)})
        else:
            _log.info("who may come in was read again", extra={"people": len(self._people)})

    def find(self, token: str) -> Person | None:
        """Return whose token it is. A digest is looked up, so that the time it takes tells nothing of tokens."""
        return self._by_digest.get(hashlib.sha256(token.encode(errors="surrogateescape")).hexdigest())

    def named(self, name: str) -> Person | None:
        """Return the person of a name: who was taken out of the file is out."""
        return next((one for one in self._by_digest.values() if one.name == name), None)


def _mark(path: Path) -> tuple[int, int, int] | None:
    """Return what differs when a file was written or exchanged; None if it is not there."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns


def _read(path: Path) -> dict[str, Person]:
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
    return {one.sha256.lower(): Person(one.name, one.role) for one in found.people}


def _first(error: Any) -> str:
    return f"{'.'.join(map(str, error['loc']))}: {error['msg']}"
