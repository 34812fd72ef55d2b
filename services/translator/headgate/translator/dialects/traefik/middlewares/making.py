"""What the makers of all kinds of middlewares are given, and how they say that one cannot be followed."""

from typing import Final, NamedTuple

from headgate.common.sealing import SealedSecret
from headgate.common.table import PluginUse
from headgate.translator.fragments.fragment import BackendUse
from headgate.translator.manifests.patches import NO_ROUTE_PATCH, RoutePatch
from headgate.translator.objects.plugin_uses import MISSING_SECRET
from headgate.translator.sources.certificates import SECRETS
from headgate.translator.world.graph import Lookups

DOLLAR: Final = "${literal_dollar ?? $}"
"""Stands for a `$` in templates of plugins: what middlewares have are no templates."""


def literal(text: str) -> str:
    """Return a text as templates of plugins have it."""
    return text.replace("$", DOLLAR)


class Unfollowed(ValueError):
    """A middleware cannot be followed; `field` is the one to mend, below its kind."""

    def __init__(self, reason: str, field: str, message: str) -> None:
        super().__init__(message)
        self.reason, self.field = reason, field


class Made(NamedTuple):
    """What a middleware stands for."""

    plugins: tuple[PluginUse, ...] = ()
    route: RoutePatch = NO_ROUTE_PATCH
    """What it says of the routes that use it."""
    uses: tuple[BackendUse, ...] = ()
    """Upstreams that its plugins send requests of their own to."""

    def before(self, other: "Made") -> "Made":
        """Return both, this one's requests first."""
        return Made(self.plugins + other.plugins, self.route.over(other.route), self.uses + other.uses)


class Making(NamedTuple):
    """Where a middleware stands."""

    namespace: str
    name: str
    lookups: Lookups
    listed: str = ""
    """Where the object that uses it lists it; empty for the Middleware's own object."""

    @property
    def cluster(self) -> str:
        """Cluster of the object."""
        return self.lookups.cluster

    def field_of(self, kind: str, field: str) -> str:
        """Return where a mistake in a field of a kind is reported: at the Middleware, or where it is listed."""
        return self.listed or f"spec.{kind}.{field}"

    def find_secret(self, field: str, name: str) -> SealedSecret | None:
        """Return a Secret of the middleware's namespace; None where look-ups are assumed.

        Raises:
            Unfollowed: there is none.
        """
        if not name:
            raise Unfollowed("Required", field, "must be given: the name of a Secret")
        if self.lookups.is_assumed:
            return None
        secret = self.lookups.get(SECRETS, self.namespace, name)
        if secret is None or secret.held is None:
            raise Unfollowed("SecretNotFound", field, f"Secret {self.namespace}/{name} {MISSING_SECRET}")
        return secret.held


def refuse_fields(reason: str, **written: object) -> None:
    """Raise Unfollowed for the first field that is given; the names are as in manifests."""
    for field, value in written.items():
        if value:
            raise Unfollowed("UnsupportedField", field, reason)
