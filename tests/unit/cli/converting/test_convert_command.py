"""`headgate convert`: what is written of Ingresses, ApisixRoutes and IngressRoutes, and what is told beside it."""

import base64
from pathlib import Path
from typing import Any

import pytest
import yaml
from cryptography.x509 import DNSName

from fakes.gateway.tls import Authority, Issued
from headgate.cli.__main__ import main

SERVICES = """\
apiVersion: v1
kind: Service
metadata: {name: web, namespace: shop}
spec: {ports: [{name: http, port: 80}]}
---
apiVersion: v1
kind: Service
metadata: {name: next, namespace: shop}
spec: {ports: [{name: http, port: 8080}]}
"""


def ingress(*paths: str, host: str = "shop.test", tls: str = "", **annotations: str) -> str:
    written = {f"nginx.ingress.kubernetes.io/{name.replace('_', '-')}": value for name, value in annotations.items()}
    backend = {"service": {"name": "web", "port": {"name": "http"}}}
    spec: Any = {
        "ingressClassName": "nginx",
        "rules": [
            {
                "host": host,
                "http": {"paths": [{"path": path, "pathType": "Prefix", "backend": backend} for path in paths]},
            }
        ],
    }
    if tls:
        spec["tls"] = [{"hosts": [host], "secretName": tls}]
    metadata = {"name": "web", "namespace": "shop", "annotations": written}
    return yaml.safe_dump({"apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "metadata": metadata, "spec": spec})


def secret(name: str, issued: Issued) -> str:
    data = {"tls.crt": issued.chain_pem, "tls.key": issued.key_pem}
    written = {key: base64.b64encode(value).decode() for key, value in data.items()}
    metadata = {"name": name, "namespace": "shop"}
    return yaml.safe_dump(
        {"apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/tls", "metadata": metadata, "data": written}
    )


class Converted:
    """What the command said of some manifests."""

    def __init__(self, code: int, out: str, err: str) -> None:
        self.code, self.out, self.err = code, out, err
        self.documents: list[Any] = list(yaml.safe_load_all(out))

    def all(self, kind: str) -> list[Any]:
        return [one for one in self.documents if one["kind"] == kind]

    def one(self, kind: str) -> Any:
        (found,) = self.all(kind)
        return found

    @property
    def remarks(self) -> list[str]:
        lines = (line.removeprefix("# ") for line in self.out.splitlines() if line.startswith("# "))
        return [line for line in lines if not line.startswith("from ")]


class Convert:
    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self._folder, self._capsys = folder, capsys

    def __call__(self, *texts: str, flags: tuple[str, ...] = ("--class-names", "nginx")) -> Converted:
        path = self._folder / "read.yaml"
        path.write_text("---\n".join((*texts, SERVICES)))
        code = main(["convert", str(path), *flags])
        said = self._capsys.readouterr()
        return Converted(code, said.out, said.err)


@pytest.fixture
def convert(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Convert:
    return Convert(tmp_path, capsys)


# Objects of all dialects


def test_an_ingress_becomes_a_route_of_a_gateway(convert: Convert) -> None:
    found = convert(ingress("/", "/api"))
    route, gateway = found.one("HTTPRoute"), found.one("Gateway")
    assert (route["metadata"]["namespace"], route["metadata"]["name"]) == ("shop", "web")
    assert route["spec"]["hostnames"] == ["shop.test"]
    assert route["spec"]["parentRefs"] == [{"name": "headgate", "namespace": "default"}]
    (rule,) = route["spec"]["rules"]
    assert [match["path"] for match in rule["matches"]] == [
        {"type": "PathPrefix", "value": "/api"},
        {"type": "PathPrefix", "value": "/"},
    ]
    assert rule["backendRefs"] == [{"name": "web", "port": 80}]
    assert [(one["port"], one["protocol"]) for one in gateway["spec"]["listeners"]] == [(80, "HTTP")]


APISIX = """\
apiVersion: apisix.apache.org/v2
kind: ApisixRoute
metadata: {name: shop, namespace: shop}
spec:
  http:
    - name: api
      match:
        hosts: [shop.test]
        paths: [/api/*]
        methods: [GET, POST]
        exprs: [{subject: {scope: Header, name: X-Kind}, op: In, set: [a, b]}]
      backends: [{serviceName: web, servicePort: 80, weight: 9}, {serviceName: next, servicePort: 8080, weight: 1}]
      plugins: [{name: limit-count, enable: true, config: {count: 5, time_window: 60}}]
"""


def test_an_apisix_route_keeps_its_conditions_weights_and_plugins(convert: Convert) -> None:
    found = convert(APISIX, flags=("--watch-without-class",))
    assert (found.code, found.remarks) == (0, [])
    (rule,) = found.one("HTTPRoute")["spec"]["rules"]
    header = {"name": "X-Kind", "type": "RegularExpression", "value": "(?:a|b)"}
    assert [(one["method"], one["headers"]) for one in rule["matches"]] == [("GET", [header]), ("POST", [header])]
    assert rule["matches"][0]["path"] == {"type": "RegularExpression", "value": "/api/.*"}
    assert [(one["name"], one["weight"]) for one in rule["backendRefs"]] == [("web", 9), ("next", 1)]
    plugin = found.one("Plugin")
    assert plugin["spec"]["plugins"] == [{"name": "limit-count", "config": {"count": 5, "time_window": 60}}]
    assert rule["filters"][0]["extensionRef"]["name"] == plugin["metadata"]["name"]


TRAEFIK = """\
apiVersion: traefik.io/v1alpha1
kind: IngressRoute
metadata: {name: shop, namespace: shop}
spec:
  entryPoints: [web]
  routes:
    - match: Host(`shop.test`) && PathPrefix(`/old`)
      kind: Rule
      middlewares: [{name: marked}]
      services: [{name: web, port: 80}]
---
apiVersion: traefik.io/v1alpha1
kind: Middleware
metadata: {name: marked, namespace: shop}
spec: {headers: {customRequestHeaders: {X-Mark: "1"}}}
"""


def test_an_ingress_route_of_traefik_keeps_its_entry_point_and_middlewares(convert: Convert) -> None:
    found = convert(TRAEFIK, flags=("--watch-without-class",))
    (rule,) = found.one("HTTPRoute")["spec"]["rules"]
    assert rule["matches"] == [{"path": {"type": "RegularExpression", "value": "/old.*"}}]
    assert "X-Mark" in str(rule.get("filters", "")) + str(found.all("Plugin"))
    assert [one["port"] for one in found.one("Gateway")["spec"]["listeners"]] == [80]
    assert found.code == 1
    assert any("X-Forwarded-* are sent as from any other route" in remark for remark in found.remarks)


# What a Gateway has to have


def test_a_host_with_a_certificate_gets_a_listener_and_the_gateway_a_grant(convert: Convert) -> None:
    issued = Authority("test").issue("shop.test", DNSName("shop.test"))
    found = convert(ingress("/", tls="shop-tls"), secret("shop-tls", issued))
    secure = found.one("Gateway")["spec"]["listeners"][1]
    assert (secure["port"], secure["protocol"], secure["hostname"]) == (443, "HTTPS", "shop.test")
    assert secure["tls"] == {"certificateRefs": [{"name": "shop-tls", "namespace": "shop"}]}
    grant = found.one("ReferenceGrant")
    assert grant["metadata"]["namespace"] == "shop"
    assert grant["spec"]["to"] == [{"group": "", "kind": "Secret", "name": "shop-tls"}]
    assert issued.key_pem.decode() not in found.out


def test_more_listeners_than_a_gateway_has_room_for_make_another(convert: Convert) -> None:
    hosts = [f"h{number}.test" for number in range(70)]
    issued = Authority("test").issue("all", *map(DNSName, hosts))
    read = yaml.safe_load(ingress("/", tls="all"))
    read["spec"]["tls"] = [{"hosts": hosts, "secretName": "all"}]
    read["spec"]["rules"] = [{**read["spec"]["rules"][0], "host": host} for host in hosts]
    found = convert(yaml.safe_dump(read), secret("all", issued))
    assert [len(one["spec"]["listeners"]) for one in found.all("Gateway")] == [64, 7]
    assert all(len(one["spec"]["hostnames"]) <= 16 for one in found.all("HTTPRoute"))
    assert sorted(host for one in found.all("HTTPRoute") for host in one["spec"]["hostnames"]) == sorted(hosts)
    assert not any("is not served" in remark for remark in found.remarks)


# Annotations


def test_a_canary_becomes_rules_by_header_and_a_share(convert: Convert) -> None:
    canary = yaml.safe_load(ingress("/", canary="true", canary_by_header="x-canary", canary_weight="20"))
    canary["metadata"]["name"] = "canary"
    canary["spec"]["rules"][0]["http"]["paths"][0]["backend"]["service"]["name"] = "next"
    found = convert(ingress("/"), yaml.safe_dump(canary))
    rules = found.one("HTTPRoute")["spec"]["rules"]
    asked = [
        (
            rule["matches"][0].get("headers", [{}])[0].get("value"),
            [(one["name"], one.get("weight")) for one in rule["backendRefs"]],
        )
        for rule in rules
    ]
    assert asked == [
        ("always", [("next", None)]),
        ("never", [("web", None)]),
        (None, [("web", 4), ("next", 1)]),
    ]


def test_a_redirect_to_a_place_is_a_standard_filter(convert: Convert) -> None:
    found = convert(ingress("/", permanent_redirect="https://new.test/here"))
    (rule,) = found.one("HTTPRoute")["spec"]["rules"]
    redirects = [each for each in rule["filters"] if each["type"] == "RequestRedirect"]
    named = [each for one in found.all("Plugin") for each in one["spec"]["plugins"] if each["name"] == "redirect"]
    assert len(redirects) + len(named) == 1


def test_what_all_routes_say_of_a_service_is_a_policy(convert: Convert) -> None:
    found = convert(ingress("/", proxy_read_timeout="30", load_balance="ewma"))
    policy = found.one("BackendTrafficPolicy")
    assert policy["spec"] == {
        "targetRefs": [{"group": "", "kind": "Service", "name": "web"}],
        "timeout": {"connect": "5s", "send": "60s", "read": "30s"},
        "loadbalancer": {"type": "ewma"},
    }
    assert not any("timeouts" in remark or "balancing" in remark for remark in found.remarks)


def test_what_routes_say_otherwise_of_one_service_is_a_comment(convert: Convert) -> None:
    other = yaml.safe_load(ingress("/", host="other.test"))
    other["metadata"]["name"] = "other"
    found = convert(ingress("/", proxy_read_timeout="30"), yaml.safe_dump(other))
    assert found.code == 1
    assert found.all("BackendTrafficPolicy") == []
    assert any(remark.startswith("timeouts.read_s was 30.0, and is 60.0") for remark in found.remarks)
    assert "differences told in comments" in found.err


def policy(name: str, spec: str) -> str:
    return f"""\
apiVersion: apisix.apache.org/v1alpha1
kind: BackendTrafficPolicy
metadata: {{name: {name}, namespace: shop}}
spec: {spec}
"""


def test_a_service_with_a_policy_keeps_it(convert: Convert) -> None:
    own = policy("own", '{targetRefs: [{group: "", kind: Service, name: web}], timeout: {read: 20s}}')
    assert convert(ingress("/", proxy_read_timeout="30"), own).all("BackendTrafficPolicy") == []


def test_a_policy_of_the_same_name_is_not_written_over(convert: Convert) -> None:
    other = policy("web", '{targetRefs: [{group: "", kind: Service, name: other}], timeout: {read: 20s}}')
    assert convert(ingress("/", proxy_read_timeout="30"), other).all("BackendTrafficPolicy") == []


@pytest.mark.parametrize("spec", ["[1]", "{targetRefs: web}", "{targetRefs: [web]}"])
def test_a_policy_that_is_written_wrongly_is_for_no_service(convert: Convert, spec: str) -> None:
    assert convert(ingress("/", proxy_read_timeout="30"), policy("own", spec)).one("BackendTrafficPolicy")


def test_a_guard_that_cannot_be_followed_is_never_left_out(convert: Convert) -> None:
    found = convert(ingress("/", auth_type="basic", auth_secret="nowhere"))
    for rule in (rule for one in found.all("HTTPRoute") for rule in one["spec"]["rules"]):
        assert not rule.get("backendRefs")
    assert found.code == 1


def test_a_host_that_asks_for_certificates_of_clients_is_not_written(convert: Convert) -> None:
    found = convert(ingress("/", auth_tls_secret="shop/authorities", auth_tls_verify_client="on"))
    assert not any(rule.get("backendRefs") for one in found.all("HTTPRoute") for rule in one["spec"]["rules"])
    assert found.code == 1


# Names, bounds, mistakes


def test_objects_of_one_name_become_routes_of_several(convert: Convert) -> None:
    other = yaml.safe_load(APISIX)
    other["metadata"]["name"] = "web"
    other["spec"]["ingressClassName"] = "nginx"
    found = convert(ingress("/", host="other.test"), yaml.safe_dump(other))
    names = [one["metadata"]["name"] for one in found.all("HTTPRoute")]
    assert len(names) == len(set(names)) == 2


def test_a_gateway_needs_a_namespace(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "read.yaml").write_text(SERVICES)
    assert main(["convert", str(tmp_path), "--gateway", "edge"]) == 2
    assert "--gateway must be NAMESPACE/NAME" in capsys.readouterr().err


def test_without_an_object_that_is_ours_it_says_what_decides_that(convert: Convert) -> None:
    found = convert(ingress("/"), flags=())
    assert found.code == 1
    assert "--class-names" in found.err


def test_objects_of_gateway_api_are_left_as_they_are(convert: Convert) -> None:
    route = """\
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: own, namespace: shop}
spec: {parentRefs: [{name: edge}], rules: [{backendRefs: [{name: web, port: 80}]}]}
"""
    found = convert(ingress("/"), route)
    assert [one["metadata"]["name"] for one in found.all("HTTPRoute")] == ["web"]
