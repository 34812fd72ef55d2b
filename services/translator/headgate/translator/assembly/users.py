"""Which objects use what."""

from collections.abc import Hashable, Iterable, Mapping
from typing import Generic, TypeVar

from headgate.common.resources import ObjectRef
from headgate.translator.world.multimap import Multimap

K = TypeVar("K", bound=Hashable)


class Users(Generic[K]):
    """Which objects use what; knows the first user and the last."""

    def __init__(self) -> None:
        self._users: Multimap[K, ObjectRef] = Multimap()

    def of(self, key: K) -> Iterable[ObjectRef]:
        """Return the users of something."""
        return self._users.of(key)

    @property
    def used(self) -> Iterable[K]:
        """What has users."""
        return self._users.keys

    def replace(self, ref: ObjectRef, old: Mapping[K, None], new: Mapping[K, None]) -> tuple[list[K], list[K]]:
        """Say what an object used and uses now; return what is used from now on, and what is no longer."""
        if not old and not new:
            return [], []
        if not old:
            return self._users.add_to_each(new, ref), []
        gone = [key for key in old if key not in new and self._users.discard(key, ref)]
        return [key for key in new if key not in old and self._users.add(key, ref)], gone
