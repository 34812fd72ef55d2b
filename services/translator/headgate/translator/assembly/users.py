"""Which objects use what."""

from collections.abc import Hashable, Iterable, Mapping
from typing import Generic, TypeVar

from headgate.common.resources import ObjectRef

K = TypeVar("K", bound=Hashable)


class Users(Generic[K]):
    """Which objects use what; knows the first user and the last."""

    def __init__(self) -> None:
        self._users: dict[K, set[ObjectRef]] = {}

    def of(self, key: K) -> Iterable[ObjectRef]:
        """Return the users of something."""
        return self._users.get(key, ())

    @property
    def used(self) -> Iterable[K]:
        """What has users."""
        return self._users

    def replace(self, ref: ObjectRef, old: Mapping[K, None], new: Mapping[K, None]) -> tuple[list[K], list[K]]:
        """Say what an object used and uses now; return what is used from now on, and what is no longer."""
        if not old and not new:
            return [], []
        gone = [key for key in old if key not in new and self._drop(ref, key)]
        return [key for key in new if key not in old and self._add(ref, key)], gone

    def _add(self, ref: ObjectRef, key: K) -> bool:
        users = self._users.setdefault(key, set())
        users.add(ref)
        return len(users) == 1

    def _drop(self, ref: ObjectRef, key: K) -> bool:
        users = self._users[key]
        users.discard(ref)
        if not users:
            del self._users[key]
        return not users
