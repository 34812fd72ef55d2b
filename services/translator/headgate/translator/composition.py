"""All dialects that this release knows: the one place where they meet."""

from headgate.translator.dialects.apisix import APISIX
from headgate.translator.dialects.ingress import INGRESSES
from headgate.translator.dialects.services import ANNOTATED_SERVICES
from headgate.translator.objects.dialect import Dialect

DIALECTS: tuple[Dialect, ...] = (INGRESSES, APISIX, ANNOTATED_SERVICES)
