"""Kinds of our own group."""

from headgate.common.resources.kind import ResourceKind, WatchMode

CLUSTER = ResourceKind("headgate.dev", "clusters", "Cluster", ("v1",), namespaced=False, watch=WatchMode.NEVER)
"""How a cluster takes part, written into the log by people (`headgate.common.clusters`)."""

ACME_CERTIFICATE = ResourceKind("headgate.dev", "acmecertificates", "AcmeCertificate", ("v1",), watch=WatchMode.NEVER)
"""A certificate that was ordered, or is, written into the log by translators (`headgate.common.acme`)."""
ACME_ACCOUNT = ResourceKind("headgate.dev", "acmeaccounts", "AcmeAccount", ("v1",), watch=WatchMode.NEVER)
"""An account with an authority, likewise."""

OUR_KINDS = (CLUSTER, ACME_CERTIFICATE, ACME_ACCOUNT)
