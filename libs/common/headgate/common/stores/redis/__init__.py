"""The snapshot store, heartbeats and leases on Redis 7 or newer, or Valkey: one server, or a primary with Sentinels.

The delta log and the statuses stay on NATS: between watchers and translators it is there anyway, and a gateway needs
neither. So a gateway with this store needs no NATS at all.

`target` can be imported by everybody; the other modules bring redis-py, which costs 24 MB of memory.
"""
