"""What is seen of the requests of a route: what it says itself, else what its entry points say."""

from typing import Any

from headgate.common.table.tracing import Tracing
from headgate.translator.fragments.spots import Spot


def observed(access_logs: bool | None, tracing: bool | None, spot: Spot) -> dict[str, Any]:
    """Return what is said of access log and traces, as fields of a route; None: the route does not say it."""
    said: dict[str, Any] = {}
    if not (spot.observed.access_logs if access_logs is None else access_logs):
        said["access_log_share"] = 0.0
    if not (spot.observed.tracing if tracing is None else tracing):
        said["tracing"] = Tracing(share=0.0, heeds_parent=False)
    return said
