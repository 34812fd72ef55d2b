"""Load of wrk and h2load, single transfers and probes."""
