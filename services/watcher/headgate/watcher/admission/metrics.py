"""What the webhook counts."""

from prometheus_client import Counter, Histogram

REVIEWS = Counter("headgate_admission_reviews", "Admission requests by how they were answered", ["verdict"])
"""`unasked`, `allowed`, `denied`; `unchecked` and `unchecked-denied` where no translator could judge."""
REVIEW_SECONDS = Histogram(
    "headgate_admission_review_duration_seconds",
    "From an admission request to its answer",
    buckets=(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10),
)
