"""The `k8s.apisix.apache.org/*` annotations of Apache APISIX' ingress controller."""

APISIX_PREFIX = "k8s.apisix.apache.org/"
