"""The states of all upstreams of one worker, and the world that they live in.

The table's compiler names each upstream that a swap changed or removed, once the balancers are in place. An upstream
without any policy has no state until somebody asks for it, for the sake of its retry budget.
"""

import asyncio
from collections.abc import Callable, Iterable

from headgate.gateway.counting.load import SharedLoad
from headgate.gateway.counting.peers import Peers
from headgate.gateway.health.active import ActiveChecker, Probe
from headgate.gateway.health.policies import NO_POLICIES, HealthPolicies
from headgate.gateway.health.probes import probe as ask
from headgate.gateway.health.state import Knowledge, OnChange, Slot, Stoppable, UpstreamState, Watching
from headgate.gateway.health.stats import HealthStats
from headgate.gateway.health.target import CheckTarget
from headgate.gateway.model.steps import Steps, finish


class UpstreamHealth:
    """All states of one worker. Used on its event loop, which may begin after it was made.

    Args:
        stats: where things are counted.
        probe: asks an endpoint for an active check.
        peers: how other workers of the gateway are heard; None: there are none.
    """

    def __init__(self, stats: HealthStats, probe: Probe = ask, peers: Peers | None = None) -> None:
        self.stats = stats
        self._peers = peers
        self._checker = ActiveChecker(probe, stats)
        self._states: dict[str, UpstreamState] = {}

    def __len__(self) -> int:
        return len(self._states)

    def state(self, key: str) -> UpstreamState:
        """Return the state of an upstream, the same over swaps, making it on first use."""
        state = self._states.get(key)
        if state is None:
            state = self._states[key] = UpstreamState(key, self)
        return state

    def shared_load(self, key: str) -> SharedLoad | None:
        """Return what other workers ask of an upstream; None: there are none."""
        return SharedLoad(self._peers, key) if self._peers is not None else None

    def adopt(self, key: str, policies: HealthPolicies, slots: Iterable[Slot], on_change: OnChange) -> Steps[None]:
        """Go on with a revision of an upstream, as `UpstreamState.adopt` does.

        Args:
            key: of the upstream.
            policies: its policies.
            slots: its endpoints that may get requests.
            on_change: told when one of them must get no more, or may again; within this call too.
        """
        if policies.are_none and key not in self._states:
            return
        state = self.state(key)
        state.on_change = on_change
        yield from state.adopt(policies, slots)

    def find(self, key: str) -> UpstreamState | None:
        """Return the state that requests have to tell how they went, None if it is only watched from outside."""
        state = self._states.get(key)
        return state if state is not None and state.hears_of_requests else None

    def knowledge(self, key: str) -> list[Knowledge]:
        """Return what is known of the endpoints of an upstream that are not well or failed requests."""
        state = self._states.get(key)
        return state.knowledge() if state is not None else []

    def count_retries(self, key: str, slots: Iterable[Slot]) -> UpstreamState:
        """Return the state that retries are counted in, made with the first retry to an upstream without policies."""
        state = self._states.get(key)
        if state is None:
            state = self.state(key)
            finish(state.adopt(NO_POLICIES, slots))
        return state

    def forget(self, key: str) -> None:
        """End all that is done for an upstream that left the table."""
        state = self._states.pop(key, None)
        if state is not None:
            state.close()

    async def close(self) -> None:
        """End all checks and timers."""
        for key in list(self._states):
            self.forget(key)
        await self._checker.close()

    def time(self) -> float:
        """Monotonic seconds, of the event loop."""
        return asyncio.get_running_loop().time()

    def call_at(self, when: float, callback: Callable[[], None]) -> Stoppable:
        """Call back at a time of the event loop."""
        return asyncio.get_running_loop().call_at(when, callback)

    def watch(self, target: CheckTarget, is_healthy: bool, on_verdict: Callable[[bool], None]) -> Watching:
        """Check an endpoint, as `ActiveChecker.watch` does."""
        return self._checker.watch(target, is_healthy, on_verdict)
