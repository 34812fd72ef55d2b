"""What plugins say of a request that is not sent, with the consumers of a gateway and without."""

from typing import Any

import jwt
import pytest

from fakes.gateway.table import ORIGIN
from headgate.common.table import Backend, PathMatch, PathType, PluginUse, Route
from headgate.gateway.plugins.built_in.catalogue import BUILT_IN
from headgate.gateway.plugins.interface import Plugin
from headgate.gateway.plugins.interface.consumers import ConsumerDirectory
from headgate.gateway.plugins.runtime.preview import preview_plugins
from headgate.gateway.plugins.runtime.verdicts import PluginVerdict
from headgate.gateway.proxy.heads.facts import RequestFacts
from unit.gateway.plugins.people import basic, consumer, directory, group
from unit.gateway.plugins.running import unsealed

SECRET = "a secret of thirty-two characters"
PEOPLE = directory(
    consumer(
        "jack",
        ("key-auth", {"key": "jack-key"}),
        ("basic-auth", {"username": "jack", "password": "right"}),
        ("jwt-auth", {"key": "jack", "secret": SECRET}),
        group="gold",
    ),
    consumer("jill", ("key-auth", {"key": "jill-key"}), plugins=(("mocking", {"response_example": "hi"}),)),
    group("gold", ("request-id", {})),
)


def verdicts(
    *uses: tuple[str, dict[str, Any]],
    people: ConsumerDirectory | None = PEOPLE,
    headers: tuple[tuple[str, str], ...] = (),
    method: str = "GET",
    body: bytes = b"",
    path: str = "/api",
) -> list[PluginVerdict]:
    """Ask the plugins of a route."""
    route = Route(
        name="r",
        path=PathMatch(type=PathType.PREFIX, value="/"),
        backends=(Backend(upstream="c1/default/web:80", weight=1),),
        plugins=tuple(PluginUse(name=name, config=config) for name, config in uses),
        provenance=ORIGIN,
    )
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers)
    facts = RequestFacts(*(part.encode() for part in (method, "http", "a.example", path, lines, "192.0.2.1")))
    facts.body = body
    return [*preview_plugins(route, facts, "a.example|r", consumers=people, unseal=unsealed if people else None)]


def shown(verdict: PluginVerdict) -> str:
    return f"{verdict.verdict} {verdict.status or ''} {verdict.detail}".replace("  ", " ").strip()


def key(value: str) -> tuple[str, str]:
    return "apikey", value


def token(secret: str) -> tuple[str, str]:
    return "Authorization", jwt.encode({"key": "jack"}, secret, algorithm="HS256")


CASBIN = {
    "username": "user",
    "model": "[request_definition]\nr = sub, obj, act\n[policy_definition]\np = sub, obj, act\n"
    "[policy_effect]\ne = some(where (p.eft == allow))\n[matchers]\n"
    "m = r.sub == p.sub && keyMatch(r.obj, p.obj) && r.act == p.act",
    "policy": "p, alice, /api, GET",
}
HALF = {"abort": {"http_status": 503, "percentage": 50}}
ALL = {"abort": {"http_status": 503, "percentage": 100, "vars": [[["arg_x", "==", "1"]]]}}
SLOW = {"delay": {"duration": 2, "percentage": 30}}
SPLIT = {
    "rules": [
        {
            "match": [{"vars": [["http_x", "==", "1"]]}],
            "weighted_upstreams": [{"upstream_id": "c1/default/new:80", "weight": 1}, {"weight": 3}],
        }
    ]
}
FLOW = {
    "rules": [
        {"case": [["uri", "==", "/admin"]], "actions": [["return", {"code": 403}]]},
        {
            "case": [["uri", "==", "/counted"]],
            "actions": [["limit-count", {"count": 1, "time_window": 60, "rejected_code": 429}]],
        },
    ]
}
XML = {"request": {"input_format": "xml", "template": "{{a}}"}}
MULTI = {"auth_plugins": [{"basic-auth": {}}, {"key-auth": {}}]}


@pytest.mark.parametrize(
    ("use", "given", "expected"),
    [
        (("key-auth", {}), {}, "answers 401 Missing API key in request"),
        (("key-auth", {}), {"headers": (key("jack-key"),)}, "passes consumer jack"),
        (("key-auth", {}), {"headers": (key("wrong"),)}, "answers 401 Invalid API key in request"),
        (("key-auth", {"anonymous_consumer": "jack"}), {}, "passes consumer jack"),
        (("basic-auth", {}), {"headers": (basic("jack", "right"),)}, "passes consumer jack"),
        (("basic-auth", {}), {"headers": (basic("jack", "wrong"),)}, "answers 401 Invalid user authorization"),
        (("jwt-auth", {}), {"headers": (token(SECRET),)}, "passes consumer jack"),
        (("jwt-auth", {}), {"headers": (token(SECRET[::-1]),)}, "answers 401 failed to verify jwt"),
        (("hmac-auth", {}), {}, "answers 401 client request can't be validated: no keyId, algorithm or signature"),
        (
            ("ldap-auth", {"base_dn": "dc=x", "ldap_uri": "ldap:389"}),
            {},
            "answers 401 Missing authorization in request",
        ),
        (
            ("ldap-auth", {"base_dn": "dc=x", "ldap_uri": "ldap:389"}),
            {"headers": (basic("jack", "right"),)},
            "unknown asks an LDAP server",
        ),
        (("multi-auth", MULTI), {"headers": (key("jack-key"),)}, "passes consumer jack"),
        (("multi-auth", MULTI), {}, "answers 401 Authorization Failed"),
        (("jwe-decrypt", {"header": "x", "forward_header": "y"}), {}, "answers 403 missing JWE token in request"),
        (("consumer-restriction", {"whitelist": ["jack"]}), {}, "answers 401 The request is rejected"),
        (("consumer-restriction", {"type": "route_id", "blacklist": ["r"]}), {}, "answers 403 The route_id is"),
        (
            ("consumer-restriction", {"type": "service_id", "blacklist": ["c1/default/web:80"]}),
            {},
            "answers 403 The service_id is",
        ),
        (("authz-casbin", CASBIN), {"headers": (("user", "alice"),)}, "passes"),
        (("authz-casbin", CASBIN), {"headers": (("user", "bob"),)}, "answers 403 Access Denied"),
        (("mocking", {"response_example": "hi", "delay": 9, "response_status": 201}), {}, "answers 201 mocked"),
        (("fault-injection", HALF), {}, "unknown draws by chance: answers 503 to 50 % of requests"),
        (("fault-injection", ALL), {"path": "/?x=1"}, "answers 503 injected fault"),
        (("fault-injection", ALL), {}, "passes"),
        (("fault-injection", SLOW), {}, "passes delays 30 % of requests by 2 s"),
        (
            ("traffic-split", SPLIT),
            {"headers": (("x", "1"),)},
            "passes sends 25% to c1/default/new:80, 75% to the backends of the route",
        ),
        (("traffic-split", SPLIT), {}, "passes no rule takes the request: it goes to the backends of the route"),
        (("workflow", FLOW), {"path": "/admin"}, "answers 403 rejected by workflow"),
        (("workflow", FLOW), {"path": "/counted"}, "unknown counts requests"),
        (("workflow", FLOW), {}, "passes"),
        (("body-transformer", XML), {"method": "POST", "body": b"<a>1</a>"}, "passes"),
        (("body-transformer", XML), {"method": "POST", "body": b"<a"}, "answers 400 request body decode"),
        (("grpc-web", {}), {"method": "POST"}, "answers 400 Content-Type is none of"),
        (("public-api", {"uri": "/apisix/prometheus/metrics"}), {}, "answers 200 the metrics of the gateway"),
        (("limit-count", {"count": 1, "time_window": 60}), {}, "unknown counts requests"),
        (("limit-conn", {"conn": 1}), {}, "unknown counts requests"),
        (("proxy-cache", {}), {}, "unknown depends on what the cache holds"),
        (("forward-auth", {"uri": "http://auth.example/"}), {}, "unknown asks another service"),
        (("request-id", {}), {}, "passes refuses no requests"),
        (("file-logger", {"path": "/log"}), {}, "passes refuses no requests"),
        (
            ("key-auth", {"_meta": {"filter": [["arg_x", "==", "1"]]}}),
            {},
            "passes _meta.filter does not take the request",
        ),
    ],
)
def test_a_verdict_is_given_where_it_can_be_known(
    use: tuple[str, dict[str, Any]], given: dict[str, Any], expected: str
) -> None:
    verdict, *_ = verdicts(use, **given)
    assert shown(verdict).startswith(expected)


@pytest.mark.parametrize("name", sorted(BUILT_IN))
def test_each_plugin_says_why_its_verdict_is_not_known(name: str) -> None:
    kind = BUILT_IN[name]
    asks = kind.on_request is not Plugin.on_request and kind.preview == "no"
    assert not asks or kind.foresee is not Plugin.foresee or kind.unforeseen != Plugin.unforeseen


def test_whose_credential_it_is_only_gateways_know() -> None:
    [without] = verdicts(("key-auth", {}), people=None)
    assert shown(without) == "answers 401 Missing API key in request"
    uses = ("key-auth", {}), ("consumer-restriction", {"whitelist": ["jack"]})
    found, restriction = verdicts(*uses, people=None, headers=(key("jack-key"),))
    assert shown(found) == "unknown consumers are known to gateways only: ask one with --admin-url"
    assert shown(restriction) == "unknown depends on the consumer, which is not known"


@pytest.mark.parametrize(("listed", "expected"), [("jack", "passes"), ("jill", "answers 403 The consumer_name is")])
def test_a_recognised_consumer_is_heard_by_plugins_behind(listed: str, expected: str) -> None:
    uses = ("consumer-restriction", {"whitelist": [listed]}), ("key-auth", {})
    asked = verdicts(*uses, headers=(key("jack-key"),))
    assert [one.name for one in asked] == ["key-auth", "request-id", "consumer-restriction"]
    restriction = asked[-1]
    assert shown(restriction).startswith(expected)


def test_plugins_of_the_consumer_and_its_group_come_in() -> None:
    uses = ("key-auth", {}), ("mocking", {"response_example": "route", "response_status": 202})
    names = [(one.name, one.status) for one in verdicts(*uses, headers=(key("jill-key"),))]
    assert names == [("key-auth", 0), ("mocking", 200)]
    late = ("key-auth", {}), ("traffic-split", SPLIT)
    assert [one.name for one in verdicts(*late, headers=(key("jill-key"),))] == ["key-auth", "mocking", "traffic-split"]
    assert [one.name for one in verdicts(*late, headers=(key("jack-key"),))] == [
        "key-auth",
        "request-id",
        "traffic-split",
    ]


def test_a_path_that_leads_to_another_route_is_said() -> None:
    rewrite = {"do": "rewrite", "pattern": "^/api(.*)$", "replacement": "/v2$1", "flag": "last"}
    (verdict,) = verdicts(("nginx-rewrite", {"steps": [rewrite]}), path="/api/a?b=c")
    assert shown(verdict) == "passes the route is chosen again for /v2/a?b=c"
    (verdict,) = verdicts(("nginx-rewrite", {"steps": [rewrite]}), path="/other")
    assert shown(verdict) == "passes"
