"""What becomes of the fields of an Ingress, for `headgate audit`; all others of the specification are followed."""

from typing import Final

from headgate.translator.annotations import PREFIX
from headgate.translator.annotations.apisix import APISIX_PREFIX
from headgate.translator.manifests.verdicts import FieldVerdict, Likeness

_PATHS = "rules[].http.paths[]"
INGRESS_FIELDS: Final = (
    FieldVerdict(
        fields=(f"{_PATHS}.pathType",),
        likeness=Likeness.DIFFERENT,
        value="ImplementationSpecific",
        unless=(f"{PREFIX}path-type", f"{APISIX_PREFIX}use-regex"),
        note=f"compared by elements, as `Prefix`; `{PREFIX}path-type` says otherwise",
    ),
    FieldVerdict(
        fields=(f"{_PATHS}.backend.resource", "defaultBackend.resource", "backend.resource"),
        likeness=Likeness.REFUSED,
        note="answered with 503: name a Service instead",
    ),
    FieldVerdict(fields=("defaultBackend", "backend"), likeness=Likeness.SAME),
    FieldVerdict(fields=("tls[]",), likeness=Likeness.SAME),
)
