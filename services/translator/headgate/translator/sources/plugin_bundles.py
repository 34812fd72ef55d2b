"""Plugins that an object holds for others, which only name it."""

from typing import NamedTuple

from headgate.common.resources import ResourceKind
from headgate.common.table import PluginUse
from headgate.translator.fragments.fragment import BackendUse
from headgate.translator.sources.policies import ObjectTarget
from headgate.translator.world.attachments import AttachmentPoint


class PluginBundle(NamedTuple):
    """What an object holds."""

    uses: tuple[PluginUse, ...] = ()
    backends: tuple[BackendUse, ...] = ()
    """Upstreams that these refer to."""
    fault: str = ""
    """Why requests cannot be served by it."""
    is_missing: bool = False
    """The object is not there."""


class BundleTarget(NamedTuple):
    """A bundle as an object refers to it."""

    kind: ResourceKind
    namespace: str
    name: str
    class_name: str | None
    """Class of the object that refers to it."""
    parameters: ObjectTarget | None = None
    """Those of the Gateway of a route of Gateway API."""


PLUGIN_BUNDLES: AttachmentPoint[BundleTarget, PluginBundle] = AttachmentPoint("plugin bundle", PluginBundle())
