"""A world in which whatever an Ingress asks for is there and as it should be.

Translated in it, an object shows what is wrong with itself and nothing else.
"""

from typing import Any, Final, TypeVar, cast

from headgate.translator.sources.certificates import SECRETS, TlsSecret
from headgate.translator.world.graph import Argument, Lookups, Rule
from headgate.translator.world.last_good import Standing
from headgate.translator.world.world import StoredKind

T = TypeVar("T")
A = TypeVar("A", bound=Argument)
_SECRET = TlsSecret(sealed=None, problem=None, authorities_pem="-")


class _InPlace:
    """`Lookups` of translation proper; classes are not asked for in there."""

    cluster = ""

    def get(self, stored: StoredKind[T], namespace: str, name: str) -> T | None:
        return cast("T", _SECRET) if stored is SECRETS else None

    def standing(self, stored: StoredKind[Any], namespace: str, name: str) -> Standing | None:
        return None

    def find(self, stored: StoredKind[T], namespace: str, index: str) -> tuple[T, ...]:
        return ()

    def derive(self, rule: Rule[A, T], argument: A) -> T:
        raise NotImplementedError(rule.name)

    def sharers(self, stored: StoredKind[Any], namespace: str, name: str) -> tuple[str, ...]:
        return ()

    def elsewhere(self, cluster: str) -> Lookups:
        return self


ALL_IN_PLACE: Final[Lookups] = _InPlace()
