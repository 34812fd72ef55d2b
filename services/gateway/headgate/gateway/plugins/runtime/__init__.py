"""The plugins of routes at work: made from a table's uses, ordered in chains, run for each request.

`registry` finds plugins by name and makes chains, `chain` holds the hooks of a route's plugins, `run` joins a chain to
one request of the proxy, `host` gives plugins what the worker has.
"""
