"""Kinds of our own group."""

from headgate.common.resources.kind import ResourceKind, WatchMode

CLUSTER = ResourceKind("headgate.dev", "clusters", "Cluster", ("v1",), namespaced=False, watch=WatchMode.NEVER)
"""How a cluster takes part, written into the log by people (`headgate.common.clusters`)."""

OUR_KINDS = (CLUSTER,)
