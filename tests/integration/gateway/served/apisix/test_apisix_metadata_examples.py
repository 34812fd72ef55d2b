"""Examples of Apache APISIX' documentation that write plugin metadata, from a GatewayProxy to the wire."""

from fakes.gateway.served import HOST
from fakes.translator.apisix import resource, route, rule
from fakes.translator.applied import world
from fakes.translator.deltas import ingress_class

CLASS = ingress_class("headgate")
OURS = {"apiGroup": "apisix.apache.org", "kind": "GatewayProxy", "name": "proxy", "scope": "Namespace"}
NAMES = {
    "limit_header": "X-Custom-RateLimit-Limit",
    "remaining_header": "X-Custom-RateLimit-Remaining",
    "reset_header": "X-Custom-RateLimit-Reset",
}


async def test_metadata_rename_the_headers_of_a_limit() -> None:
    proxy = resource("GatewayProxy", "proxy", {"pluginMetadata": {"limit-count": NAMES}}, "v1alpha1")
    chosen = {**CLASS, "spec": {**CLASS["spec"], "parameters": {**OURS, "namespace": "default"}}}
    limit = {"count": 1, "time_window": 600, "rejected_code": 429, "key_type": "var", "key": "remote_addr"}
    plugins = [{"name": "limit-count", "enable": True, "config": limit}]
    limited = route(rule(hosts=[HOST], backends=[{"serviceName": "one", "servicePort": 80}], plugins=plugins))
    limited["spec"]["ingressClassName"] = "headgate"
    async with world("one") as made:
        made.proxy.apply(chosen, proxy, limited)
        first, second = await made.proxy.get(), await made.proxy.get()
    assert [first[name] for name in NAMES.values()] == ["1", "0", "600"]
    assert "x-ratelimit-limit" not in first.head.decode().lower()
    assert (second.status, second[NAMES["remaining_header"]]) == (429, "0")
