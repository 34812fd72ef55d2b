"""How far the objects of one namespace reach into what others have."""

from dataclasses import dataclass
from typing import Literal

from headgate.common.selection import matches_any

HostSharing = Literal["paths", "namespace", "any"]


@dataclass(frozen=True, slots=True)
class Boundaries:
    """The operator's settings about namespaces."""

    host_sharing: HostSharing = "paths"
    """What other namespaces than the owner's may claim of a host; see `ownership`."""
    global_rule_namespaces: tuple[str, ...] = ("*",)
    """Namespaces, or patterns of them, whose ApisixGlobalRules run for all routes. Those of others run for routes of
    their own namespace."""

    def has_global_rules(self, namespace: str) -> bool:
        """Whether rules of a namespace run on every route."""
        return matches_any(namespace, self.global_rule_namespaces)


DEFAULT_BOUNDARIES = Boundaries()
