"""The table of a worker: followed in the store, applied, and kept on disk."""
