"""What is said of a request: candidates, the winner, its backends and what is known of their health."""

from headgate.common.table import Entry, PathType, Provenance
from headgate.gateway.plugins.runtime.verdicts import PluginVerdict


class Candidate(Entry):
    """A route of the request's virtual host, or a virtual host that was passed over."""

    host: str
    route: str = ""
    """Empty for a virtual host that was passed over as a whole."""
    path_type: PathType | None = None
    path: str = ""
    priority: int = 0
    condition: str = ""
    """What the route asks for besides the path, in words."""
    takes_path: bool = False
    wins: bool = False
    reason: str
    """Why it won or lost."""
    provenance: Provenance | None = None


class ExplainedEndpoint(Entry):
    """An endpoint of a backend."""

    address: str
    port: int
    weight: int
    zone: str = ""
    cluster: str = ""
    state: str
    """`ready`, `draining` or `not ready`; or who reaches it, if this gateway does not."""
    priority: int = 0
    """Greater ones get requests only as health says."""
    hop: str = ""
    """What it speaks as a gateway of its cluster; empty for the endpoint itself."""
    gets_requests: bool
    failures: str = ""
    """Which requests failed, as ejection counts them: `3 failed, the last 12 s ago: connect`."""


class ExplainedBackend(Entry):
    """A backend of the winning route."""

    upstream: str
    weight: int
    share: float
    """Of the route's requests, 0 to 1; of a hashed group each backend has that of its weight."""
    groups: tuple[str, ...] = ()
    """Groups that lead to it, the outermost first; those of one that has no upstream lead to a group that cannot be
    served."""
    role: str = ""
    """In its group: `main`, `fallback`, `by hash`; empty: by weight."""
    plugins: tuple[PluginVerdict, ...] = ()
    """Of the backend and of the groups that lead to it, in the order in which they are asked behind the route's."""
    protocol: str = ""
    unavailable: str = ""
    """Why it answers 503; empty if it does not."""
    endpoints: tuple[ExplainedEndpoint, ...] = ()
    provenance: Provenance | None = None

    @property
    def target(self) -> str:
        """Key of the upstream, or of the group that cannot be served."""
        return self.upstream or self.groups[-1]


class ExplainedMirror(Entry):
    """Where copies of the winner's requests go."""

    target: str
    """Key of an upstream, or a URL."""
    share: float
    """Of the requests, 0 to 1."""
    unavailable: str = ""
    """Why copies are lost; empty if they are not."""


class HealthNote(Entry):
    """What one worker of a gateway knows of an endpoint's health."""

    is_unhealthy: bool = False
    """By active checks."""
    ejected_s: float = 0.0
    """Seconds until it is let back in; 0: it is not ejected."""
    failures: str = ""
    """Which requests failed, as ejection counts them; empty also without ejection."""

    @property
    def is_out(self) -> bool:
        """Whether it gets no requests, unless too few are left."""
        return self.is_unhealthy or self.ejected_s > 0


class Explanation(Entry):
    """What a table does with one request."""

    version: str
    method: str
    host: str
    path: str
    """As it was sent, without the query."""
    read_path: str = ""
    """What routes were asked for, if that is another one: the path as `path_normalization` has it."""
    forwarded_path: str = ""
    """What the upstream gets, if that is another one; plugins of the route may change it further."""
    listener: str = ""
    """Key of the listener that has the request; empty if none does."""
    virtual_host: str | None
    winner: str | None
    """`host|route name`."""
    verdict: str
    """One sentence."""
    candidates: tuple[Candidate, ...]
    """The winner first if there is one, then the losers in the order in which they would win."""
    plugins: tuple[PluginVerdict, ...] = ()
    """Of the winner, in the order in which they are asked."""
    nearest: str = ""
    """The host of the table that is spelt most alike, where none takes the request's."""
    backends: tuple[ExplainedBackend, ...] = ()
    mirrors: tuple[ExplainedMirror, ...] = ()
    """Of the winner."""
