"""One worker: what its process wires together, and the pages and heartbeats that it answers for."""
