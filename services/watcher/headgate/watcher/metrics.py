"""What a watcher counts."""

from prometheus_client import Counter, Gauge, Histogram

MANIFEST_PROBLEMS = Gauge("headgate_manifest_problems", "Faults in manifest files at present")
DELTAS_PUBLISHED = Counter("headgate_watcher_deltas_published", "Deltas put into the log", ["kind", "operation"])
PUBLISH_SECONDS = Histogram(
    "headgate_watcher_publish_duration_seconds",
    "From the sight of a change to its place in the log",
    buckets=(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5, 30),
)
UNPUBLISHED = Gauge("headgate_watcher_unpublished", "Objects whose present state is not in the log yet")
OLDEST_UNPUBLISHED = Gauge(
    "headgate_watcher_oldest_unpublished_seconds", "Age of the oldest change seen that is not in the log yet; 0: none"
)
REFUSED = Counter("headgate_watcher_refused", "Objects that cannot be published", ["kind", "reason"])
