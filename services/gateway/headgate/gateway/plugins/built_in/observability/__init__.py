"""What is reported of requests: log entries, metrics, traces."""
