"""The stores in one process, without NATS: for tests and for commands that work on files alone.

The same semantics as the real ones: compare-and-set, deduplication, replay before news, verified chunks. Each `follow`
is a reader of its own; all must be on one event loop. What a store has is an attribute of it, to be looked at or lost.
"""
