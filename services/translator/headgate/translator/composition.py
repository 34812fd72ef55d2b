"""All dialects that this release knows: the one place where they meet."""

from headgate.translator.dialects.apisix import APISIX
from headgate.translator.dialects.gateway_api import GATEWAY_API
from headgate.translator.dialects.ingress import INGRESSES
from headgate.translator.dialects.multicluster import MULTICLUSTER
from headgate.translator.dialects.plugins import PLUGINS
from headgate.translator.dialects.services import ANNOTATED_SERVICES
from headgate.translator.dialects.traefik import TRAEFIK
from headgate.translator.objects.dialect import Dialect

DIALECTS: tuple[Dialect, ...] = (INGRESSES, APISIX, TRAEFIK, GATEWAY_API, PLUGINS, MULTICLUSTER, ANNOTATED_SERVICES)
