"""Sites whose hosts are ApisixRoutes."""

from bench.setup.manifests import Dialect

_ROUTE = """\
apiVersion: apisix.apache.org/v2
kind: ApisixRoute
metadata: {{name: {name}, namespace: bench}}
spec:
  ingressClassName: headgate
  http:
  - name: main
    match:
      hosts: [{host}]
      paths: ["/*", /api/v1/*]
    backends:
    - {{serviceName: {service}, servicePort: 80}}
{plugins}{others}"""
_PLUGINS = """\
    plugins:
    - {name: cors, enable: true}
    - {name: request-id, enable: true}
"""
_EXPRESSION = """\
  - name: canary
    priority: 10
    match:
      hosts: [{host}]
      paths: ["/*"]
      exprs:
      - {{subject: {{scope: Header, name: X-Canary}}, op: Equal, value: "yes"}}
    backends:
    - {{serviceName: {service}, servicePort: 80}}
"""
_WITH_PLUGINS = 4
_WITH_EXPRESSION = 8
"""One route in so many."""


def apisix_route(number: int, name: str, host: str, service: str) -> str:
    """An ApisixRoute of one host with two paths; some have plugins, or a rule more with an expression."""
    plugins = _PLUGINS if number % _WITH_PLUGINS == 0 else ""
    others = _EXPRESSION.format(host=host, service=service) if number % _WITH_EXPRESSION == 1 else ""
    return _ROUTE.format(name=name, host=host, service=service, plugins=plugins, others=others)


APISIX = Dialect("ApisixRoutes", apisix_route)
