"""The translator: from objects of any number of clusters to one versioned route table.

The core is pure and synchronous (`world`, `graph`, `dialects`, `assembly`, `conditions`, `translation`, `offline`); the
shell around it (`loop`, `publisher`, `status_poster`) does the waiting, the bus and the clock.
"""
