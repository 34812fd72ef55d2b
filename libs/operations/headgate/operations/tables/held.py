"""What keeps a table back, in a line: the revision that it is pinned to, or how far its rollout is."""

from headgate.common.snapshot import Pin, Rollout, RolloutPhase
from headgate.operations.wording import age


def describe_pin(pin: Pin) -> str:
    """Say what a table is pinned to, by whom, when and why."""
    frozen = ", endpoints too" if pin.is_frozen else ""
    by = f" by {pin.by}" if pin.by else ""
    return f"pinned to {pin.version}{frozen} {age(pin.since)} ago{by}{f': {pin.reason}' if pin.reason else ''}"


def describe_rollout(current: Rollout) -> str:
    """Say what a rollout is doing, since when and why."""
    if current.phase is RolloutPhase.HELD:
        by = f" by {current.by}" if current.by else ""
        return f"back from {current.target} since {age(current.since)}{by}: {current.reason}"
    steps = f"step {current.step + 1} of {len(current.shares) + 1}"
    return f"{current.target} is rolled out, {steps}, since {age(current.since)}"
