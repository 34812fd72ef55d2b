"""Values and pure functions that all parts of the gateway share; it imports none of them.

connection   how connections to an endpoint are opened and kept
networks     networks of addresses, and whether an address is within
addresses    sets of networks for look-ups by the request
patterns     patterns of a table, one by one and many at once
steps        work that is cut into steps
form_parts   the fields of forms in parts
"""
