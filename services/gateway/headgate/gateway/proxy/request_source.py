"""What choosing a route and an endpoint may ask of a request, and what it says of the upstream that it chose."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from headgate.gateway.health.circuit import Circuit
    from headgate.gateway.health.ejection import Outcome
    from headgate.gateway.proxy.heads.facts import RequestFacts


class RequestSource(Protocol):
    """A request that can be looked at beyond its host and path; most never are."""

    def facts(self) -> "RequestFacts":
        """Give what is known of the request, the same object for as long as the request lasts."""

    def note_upstream(self, state: "UpstreamState | None") -> None:
        """Hear of the upstream that is about to be chosen from, if anything is to be told to it."""


class UpstreamState(Protocol):
    """What is remembered of one upstream's load and failures: `health.state.UpstreamState`."""

    @property
    def circuit(self) -> "Circuit | None":
        """Bounds of its connections; None: there are none."""

    def report_pool(self, pool: object, outcome: "Outcome") -> None:
        """Learn how a request to an endpoint went: the answer's status, or `connect`, `reset` or `timeout`."""

    def may_begin(self) -> str | None:
        """Count a request that begins; why it must not, if so."""

    def ended(self) -> None:
        """Count the end of one that began."""

    def wait(self, resume: Callable[[], None]) -> str | None:
        """Have `resume` called when a connection may be had; why that is not possible, if so."""

    def may_retry(self, share: float | None, *, is_free: bool = False) -> bool:
        """Count a retry that begins; False: it would be more than this share of the requests under way, or more than
        the upstream's own budget allows, which alone bounds a free one.
        """

    def retry_ended(self) -> None:
        """Count the end of a retry."""
