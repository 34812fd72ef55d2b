"""L4RoutePolicy: plugins of TCPRoutes, UDPRoutes and TLSRoutes, which are checked; those routes are not served."""

from headgate.common.problems import Problem, Severity
from headgate.common.resources import JsonObject, ObjectRef
from headgate.translator.dialects.apisix.context import Context, identify
from headgate.translator.dialects.apisix.models.plugin import NamedPlugin, Plugin
from headgate.translator.dialects.apisix.models.policy import L4RoutePolicySpec
from headgate.translator.dialects.apisix.reading import Part, Spec
from headgate.translator.dialects.apisix.stream import read_stream_plugins
from headgate.translator.dialects.apisix.targets import ancestors_of, read_targets
from headgate.translator.fragment import TARGETS_NOT_SERVED, Fragment


def translate_l4_policy(ref: ObjectRef, manifest: JsonObject, context: Context) -> Fragment:
    """Return what is wrong with an L4RoutePolicy, and that nothing that it is about is served."""
    problems: list[Problem] = []
    spec = Spec(manifest.get("spec"), problems)
    found = spec.rest(L4RoutePolicySpec, "plugins")
    targets = [*read_targets(manifest)]
    parts = [
        Part(Plugin(name=part.value.name, config=part.value.config), part.field)
        for part in spec.each("plugins", NamedPlugin)
    ]
    read_stream_plugins(parts, problems, is_udp=any(target.kind == "UDPRoute" for target in targets))
    message = "checked, and not in force anywhere: TCPRoutes, UDPRoutes and TLSRoutes are not served"
    problems.append(Problem(severity=Severity.INFO, reason=TARGETS_NOT_SERVED, field="spec", message=message))
    return Fragment(
        identify(ref, manifest),
        problems=tuple(problems),
        ancestors=ancestors_of(ref, targets, is_readable=found is not None),
    )
