"""Sites whose hosts are IngressRoutes of Traefik."""

from bench.setup.manifests import Dialect

RULE = "Host(`{host}`) && PathPrefix(`/`) && Method(`GET`) && !Header(`X-Canary`, `yes`)"
"""Four matchers."""
_ROUTE = """\
apiVersion: traefik.io/v1alpha1
kind: IngressRoute
metadata: {{name: {name}, namespace: bench}}
spec:
  routes:
  - kind: Rule
    match: {rule}
    services:
    - {{name: {service}, port: 80}}
"""


def ingress_route(name: str, host: str, service: str) -> str:
    """An IngressRoute with a rule of four matchers."""
    return _ROUTE.format(name=name, rule=RULE.format(host=host), service=service)


TRAEFIK = Dialect("IngressRoutes", lambda _, name, host, service: ingress_route(name, host, service))
