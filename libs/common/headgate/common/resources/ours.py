"""Kinds of our own group."""

from headgate.common.resources.kind import OwnershipRule, ResourceKind, StatusShape, WatchMode
from headgate.common.resources.references import secret_field

OUR_GROUP = "headgate.dev"
PLUGIN = ResourceKind(
    OUR_GROUP,
    "plugins",
    "Plugin",
    ("v1",),
    has_definition=True,
    dialect="plugins",
    ownership=OwnershipRule.REFERENCE,
    status=StatusShape.CONDITIONS,
    is_asked=True,
    references=(secret_field("spec.plugins.*.secretRef"),),
)
"""Plugins that routes of Gateway API name by an `extensionRef`."""

CLUSTER = ResourceKind(OUR_GROUP, "clusters", "Cluster", ("v1",), namespaced=False, watch=WatchMode.NEVER)
"""How a cluster takes part, written into the log by people (`headgate.common.clusters`)."""

ACME_CERTIFICATE = ResourceKind(OUR_GROUP, "acmecertificates", "AcmeCertificate", ("v1",), watch=WatchMode.NEVER)
"""A certificate that was ordered, or is, written into the log by translators (`headgate.common.acme`)."""
ACME_ACCOUNT = ResourceKind(OUR_GROUP, "acmeaccounts", "AcmeAccount", ("v1",), watch=WatchMode.NEVER)
"""An account with an authority, likewise."""

OUR_KINDS = (PLUGIN, CLUSTER, ACME_CERTIFICATE, ACME_ACCOUNT)
