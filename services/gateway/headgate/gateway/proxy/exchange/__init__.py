"""One request and its answer, whatever the versions of HTTP on both sides.

`exchange` moves payload between two sides. Its parts share an `active_request` and do not know the exchange.
"""
