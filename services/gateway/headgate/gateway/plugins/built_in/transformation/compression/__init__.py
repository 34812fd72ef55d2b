"""`brotli`, `gzip` and `zstd`, which choose one coding together."""
