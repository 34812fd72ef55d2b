"""Where the requests of routes go: to an upstream, or to a group of backends, with what is done on the way there."""

from typing import Self

from pydantic import Field, model_validator

from headgate.common.table.base import Entry
from headgate.common.table.mirror import Mirror
from headgate.common.table.plugin_use import PluginUse
from headgate.common.table.sending import Retries, Timeouts

_NO_TIMEOUTS = Timeouts()


class Backend(Entry):
    """One choice of a route, or of a group of backends."""

    upstream: str = ""
    """Key of an `Upstream` entry."""
    group: str = ""
    """Key of a `BackendGroup` entry, instead of an upstream."""
    weight: int = Field(default=1, ge=0, le=1_000_000)
    session_name: str = ""
    """By which cookies know it whose stickiness names backends alone; empty: by its key."""
    plugins: tuple[PluginUse, ...] = ()
    """Run for requests that go there, behind those of the route. None of them recognises consumers."""
    mirrors: tuple[Mirror, ...] = ()
    """Where copies of these requests go."""
    timeouts: Timeouts = Timeouts()
    """What is given here stands in the place of the route's. `request_s` begins when the backend is chosen, and
    bounds the rest of the request."""
    retries: Retries | None = None
    """In the place of the route's, once the backend is chosen."""
    keeps_body: int = Field(default=0, ge=0)
    """As `Route.keeps_body`: once the backend is chosen, bodies of so many bytes are read before they go there."""

    @model_validator(mode="after")
    def _has_one_target(self) -> Self:
        if bool(self.upstream) == bool(self.group):
            raise ValueError("a backend needs either upstream or group")
        return self

    @property
    def target(self) -> str:
        """Key of the upstream, or of the group."""
        return self.upstream or self.group

    @property
    def is_plain(self) -> bool:
        """Whether it is an upstream, and nothing besides is said of it."""
        is_sent_once = self.retries is None and not self.keeps_body
        says_nothing = not (self.group or self.session_name or self.plugins or self.mirrors)
        return says_nothing and is_sent_once and self.timeouts == _NO_TIMEOUTS
