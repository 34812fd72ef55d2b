"""One GatewayClass: whether it is ours, and accepted."""

from headgate.common.problems import Problem
from headgate.common.resources import JsonObject, ObjectRef
from headgate.common.status import ConditionType
from headgate.translator.dialects.gateway_api.features import served_features
from headgate.translator.dialects.gateway_api.gateways.parameters import fault_of_class
from headgate.translator.dialects.gateway_api.models.gateway import GatewayClassSpec
from headgate.translator.fragments.fragment import Fragment
from headgate.translator.fragments.status_part import SaidCondition
from headgate.translator.manifests.specs import Spec
from headgate.translator.objects.document import identify
from headgate.translator.sources.gateways import controller_of
from headgate.translator.world.graph import Lookups

_VERSION = SaidCondition(
    ConditionType.SUPPORTED_VERSION,
    "Unknown",
    "NotChecked",
    "objects are read as Gateway API 1.6 defines them; which version of the definitions is installed is not looked at",
)


def is_of_our_controller(ref: ObjectRef, manifest: JsonObject, lookups: Lookups) -> bool:
    """Whether a GatewayClass names a controller of ours."""
    return lookups.settings.owns_gateways_of(controller_of(manifest))


def translate_gateway_class(ref: ObjectRef, manifest: JsonObject, lookups: Lookups) -> Fragment:
    """Return how a GatewayClass stands; there is nothing of it in the table."""
    problems: list[Problem] = []
    spec = Spec(manifest.get("spec"), problems).rest(GatewayClassSpec)
    said: tuple[SaidCondition, ...] = (_VERSION,)
    fault = None if spec is None or lookups.is_assumed else fault_of_class(ref, manifest, lookups)
    if fault is not None:
        problems.append(fault)
        said = (SaidCondition(ConditionType.ACCEPTED, "False", fault.reason, str(fault)), _VERSION)
    features = served_features(have_addresses=not lookups.settings.gateway_addresses.is_empty)
    return Fragment(identify(ref, manifest), problems=tuple(problems), said=said, features=features)
