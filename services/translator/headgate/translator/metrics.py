"""What the translator measures."""

from prometheus_client import Counter, Gauge, Histogram

_FAST = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)

TRANSLATE_SECONDS = Histogram(
    "headgate_translator_translate_duration_seconds", "From changes taken in to an up-to-date image.", buckets=_FAST
)
COMMIT_SECONDS = Histogram(
    "headgate_translator_commit_duration_seconds", "Writing one revision to the store.", buckets=_FAST
)
NODES_RUN = Counter("headgate_translator_nodes_run", "Derived values computed.")
ENTRIES_CHANGED = Counter("headgate_translator_entries_changed", "Table entries put or discarded.")
REVISIONS = Counter("headgate_translator_revisions", "Revisions committed by this process.")
CONFLICTS = Counter("headgate_translator_conflicts", "Commits that lost against another writer.")
ADMISSION_SECONDS = Histogram(
    "headgate_translator_admission_duration_seconds", "Judging one proposed object.", ["outcome"], buckets=_FAST
)
PLAN_SECONDS = Histogram(
    "headgate_translator_plan_duration_seconds", "Saying what manifests would change.", ["outcome"], buckets=_FAST
)
STORE_FAILURES = Counter("headgate_translator_store_failures", "Commits that failed and are tried again.")
OLDEST_UNCOMMITTED = Gauge(
    "headgate_translator_oldest_uncommitted_seconds",
    "Age of the oldest change read that is in no revision yet; 0: none.",
)
EPOCH = Gauge("headgate_translator_epoch", "Epoch of the current revision.")
REVISION = Gauge("headgate_translator_revision", "Number of the current revision within its epoch.")
OBJECTS = Gauge("headgate_translator_objects", "Objects in the world.", ["resource"])
PROBLEMS = Gauge("headgate_translator_objects_with_problems", "Objects of ours with problems.", ["severity"])
PINNED = Gauge("headgate_translator_pinned", "1 while the table is pinned to an old revision.")
ROLLOUT_STEP = Gauge("headgate_translator_rollout_step", "Step of the rollout under way, from 1; 0: none is.")
HELD_BACK = Gauge("headgate_translator_held_back", "1 while the fleet is back from a table that was rolled out.")
ROLLOUT_MOVES = Counter("headgate_translator_rollout_moves", "What happened to rollouts.", ["move"])
