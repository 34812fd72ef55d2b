"""Who has which roles, by a chain of `g` lines."""

from collections.abc import Iterable, Sequence
from typing import Final

MAX_LINKS: Final = 9
"""Lines between a subject and a role; Casbin looks at ten levels, the subject being the first."""


class RoleGraph:
    """The links of one role definition, by domain."""

    __slots__ = ("_links",)

    def __init__(self, lines: Iterable[Sequence[str]]) -> None:
        """Take lines of subject, role and, where the definition has it, domain."""
        self._links: dict[str, dict[str, list[str]]] = {}
        for subject, role, *domain in lines:
            self._links.setdefault(domain[0] if domain else "", {}).setdefault(subject, []).append(role)

    def reach(self, subject: str, domain: str = "") -> frozenset[str]:
        """Return a subject and all roles that it has in a domain."""
        links = self._links.get(domain)
        if links is None or subject not in links:
            return frozenset((subject,))
        reached, last = {subject}, {subject}
        for _ in range(MAX_LINKS):
            last = {role for each in last for role in links.get(each, ())} - reached
            if not last:
                break
            reached |= last
        return frozenset(reached)
