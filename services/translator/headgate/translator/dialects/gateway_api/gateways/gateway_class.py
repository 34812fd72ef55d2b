"""One GatewayClass: whether it is ours, and accepted, and whether the installed definitions are of a known version."""

import re

from headgate.common.problems import Problem
from headgate.common.resources import BUNDLE_VERSION, DEFINITION, JsonObject, ObjectRef
from headgate.common.status import ConditionType
from headgate.translator.dialects.gateway_api.features import served_features
from headgate.translator.dialects.gateway_api.gateways.parameters import fault_of_class
from headgate.translator.dialects.gateway_api.models.gateway import GatewayClassSpec
from headgate.translator.fragments.fragment import Fragment
from headgate.translator.fragments.status_part import SaidCondition
from headgate.translator.manifests.specs import Spec
from headgate.translator.objects.document import identify
from headgate.translator.sources.gateways import controller_of, installed_version
from headgate.translator.world.graph import Lookups

_NEWEST_MINOR = 6
_KNOWN = re.compile(r"v?1\.(\d{1,3})(\.\d{1,3}(-[0-9A-Za-z.]{1,30})?)?", re.ASCII)
_NOT_CHECKED = SaidCondition(
    ConditionType.SUPPORTED_VERSION,
    "Unknown",
    "NotChecked",
    f"objects are read as Gateway API 1.{_NEWEST_MINOR} defines them; the version of the installed definitions is not "
    f"known: the watcher lacks the right to read the CustomResourceDefinition {DEFINITION.names[0]}, or it does not "
    f"have the annotation {BUNDLE_VERSION}",
)


def is_of_our_controller(ref: ObjectRef, manifest: JsonObject, lookups: Lookups) -> bool:
    """Whether a GatewayClass names a controller of ours."""
    return lookups.settings.owns_gateways_of(controller_of(manifest))


def translate_gateway_class(ref: ObjectRef, manifest: JsonObject, lookups: Lookups) -> Fragment:
    """Return how a GatewayClass stands; there is nothing of it in the table."""
    problems: list[Problem] = []
    spec = Spec(manifest.get("spec"), problems).rest(GatewayClassSpec)
    version = _say_version(installed_version(lookups))
    said: tuple[SaidCondition, ...] = (version,)
    fault = None if spec is None or lookups.is_assumed else fault_of_class(ref, manifest, lookups)
    if fault is not None:
        problems.append(fault)
        said = (SaidCondition(ConditionType.ACCEPTED, "False", fault.reason, str(fault)), version)
    settings = lookups.settings
    features = served_features(
        have_addresses=not settings.gateway_addresses.is_empty, have_infrastructure=settings.have_infrastructure
    )
    return Fragment(identify(ref, manifest), problems=tuple(problems), said=said, features=features)


def _say_version(installed: str | None) -> SaidCondition:
    """Say whether the definitions are of a version whose objects are read; of others they are as far as they go."""
    if installed is None:
        return _NOT_CHECKED
    known = _KNOWN.fullmatch(installed)
    if known is not None and int(known[1]) <= _NEWEST_MINOR:
        message = f"the installed definitions are of Gateway API {installed}"
        return SaidCondition(ConditionType.SUPPORTED_VERSION, "True", "SupportedVersion", message)
    message = (
        f"the installed definitions are of Gateway API {installed[:64]}; versions 1.0 to 1.{_NEWEST_MINOR} are "
        "supported, and fields that these do not have are passed over"
    )
    return SaidCondition(ConditionType.SUPPORTED_VERSION, "False", "UnsupportedVersion", message)
