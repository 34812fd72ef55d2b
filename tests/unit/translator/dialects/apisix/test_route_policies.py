"""HTTPRoutePolicy: which requests an Ingress takes by it, which of several goes first, and what its author is told."""

from typing import Any

import pytest

from fakes.translator.apisix import Translated, resource, route, rule
from fakes.translator.deltas import ingress, ingress_class, service
from headgate.common.problems import Severity
from headgate.translator.world.settings import TranslationSettings

WEB = {"group": "networking.k8s.io", "kind": "Ingress", "name": "web"}
HEADER = ["http_x_hrp_name", "==", "one"]
APISIX = "apisix.apache.org/apisix-ingress-controller"


def policy(name: str = "policy", *targets: Any, **spec: Any) -> Any:
    refs = [{**WEB, **target} for target in targets] or [WEB]
    return resource("HTTPRoutePolicy", name, {"targetRefs": refs, **spec}, version="v1alpha1")


def served(*manifests: Any) -> Translated:
    return Translated(ingress("web", host="a.com"), *manifests)


def takes(table: Translated, url: str = "a.com/", **headers: str) -> str | None:
    """Return the name of the Ingress that takes a request."""
    found = table.ask("GET", url, {name.replace("_", "-"): value for name, value in headers.items()}).winner
    return found and found.partition("/default/")[2].partition(" ")[0]


def told(table: Translated, name: str = "policy") -> list[tuple[str, str]]:
    return [(one.reason, one.field) for one in table.problems(name)]


def test_requests_have_to_satisfy_the_vars() -> None:
    table = served(policy(priority=10, vars=[HEADER]))
    assert takes(table) is None
    assert takes(table, x_hrp_name="two") is None
    assert takes(table, x_hrp_name="one") == "web"
    assert told(table) == []


def test_an_ingress_that_no_policy_names_is_as_ever() -> None:
    table = served(policy("policy", {"name": "other"}, vars=[HEADER]), ingress("other", host="b.com"))
    assert takes(table) == "web"
    assert takes(table, "b.com/") is None


@pytest.mark.parametrize(
    ("expression", "url", "headers", "expected"),
    [
        (["arg_id", "==", 5], "a.com/?id=5", {}, True),
        (["arg_id", "==", 5], "a.com/?id=6", {}, False),
        (["arg_id", "~=", "5"], "a.com/", {}, True),
        (["arg_age", ">", 18], "a.com/?age=19", {}, True),
        (["arg_age", ">=", 18.5], "a.com/?age=18", {}, False),
        (["arg_age", "<", 18], "a.com/?age=none", {}, False),
        (["arg_age", "!", "<", 18], "a.com/", {}, True),
        (["http_x_env", "~~", "^pro"], "a.com/", {"x-env": "prod"}, True),
        (["http_x_env", "~~", "^pro"], "a.com/", {"x-env": "PROD"}, False),
        (["http_x_env", "~*", "^pro"], "a.com/", {"x-env": "PROD"}, True),
        (["http_x_env", "in", ["dev", "prod"]], "a.com/", {"x-env": "prod"}, True),
        (["http_x_env", "in", []], "a.com/", {"x-env": "prod"}, False),
        (["http_x_env", "!", "in", ["dev", "prod"]], "a.com/", {"x-env": "prod"}, False),
        (["http_x_roles", "has", "a.b"], "a.com/", {"x-roles": "x, a.b,y"}, True),
        (["http_x_roles", "has", "a.b"], "a.com/", {"x-roles": "x, a-b,y"}, False),
        (["http_x_ip", "ipmatch", ["10.1.2.3/8"]], "a.com/", {"x-ip": "10.9.9.9"}, True),
        (["http_x_ip", "ipmatch", "192.0.2.1"], "a.com/", {"x-ip": "192.0.2.2"}, False),
        (["OR", ["arg_a", "==", "1"], ["arg_b", "==", "1"]], "a.com/?b=1", {}, True),
        (["OR", ["arg_a", "==", "1"], ["arg_b", "==", "1"]], "a.com/?c=1", {}, False),
        (["AND", ["arg_a", "==", "1"], ["arg_b", "==", "1"]], "a.com/?a=1", {}, False),
        (["!AND", ["arg_a", "==", "1"], ["arg_b", "==", "1"]], "a.com/?a=1", {}, True),
        (["!OR", ["arg_a", "==", "1"], ["arg_b", "==", "1"]], "a.com/?a=1", {}, False),
        (["!OR", ["arg_a", "==", "1"], ["AND", ["arg_b", "==", "1"], ["arg_c", "==", "1"]]], "a.com/?b=1", {}, True),
        (["uri", "~~", "^/shop"], "a.com/shop/x", {}, True),
        (["request_method", "==", "GET"], "a.com/", {}, True),
    ],
)
def test_expressions_are_those_of_lua_resty_expr(expression: Any, url: str, headers: Any, expected: bool) -> None:
    table = served(policy(vars=[expression]))
    assert told(table) == []
    assert (table.ask("GET", url, headers).winner is not None) is expected


def test_a_join_may_stand_as_the_whole() -> None:
    table = served(policy(vars=["OR", ["arg_a", "==", "1"], ["arg_b", "==", "1"]]))
    assert takes(table, "a.com/?a=1") == "web"
    assert takes(table) is None


def test_the_higher_priority_goes_first_among_routes_for_one_path() -> None:
    other = ingress("other", host="a.com")
    assert takes(served(other, policy(priority=10, vars=[HEADER])), x_hrp_name="one") == "web"
    low = policy("low", {"name": "other"}, priority=11)
    assert takes(served(other, policy(priority=10, vars=[HEADER]), low), x_hrp_name="one") == "other"


def test_the_longer_prefix_goes_before_any_priority() -> None:
    table = served(policy(priority=10), ingress("longer", host="a.com", path="/shop"))
    assert takes(table, "a.com/shop/x") == "longer"


def test_priorities_are_those_of_rules_of_apisix_routes() -> None:
    def with_priority(priority: int) -> Translated:
        manifest = ingress("web", host="a.com")
        manifest["spec"]["rules"][0]["http"]["paths"][0] |= {"path": "/x", "pathType": "Exact"}
        crd = route(rule("rule", "/x", hosts=["a.com"], priority=5, match_methods=["GET"]))
        return Translated(manifest, policy(priority=priority, vars=[HEADER]), crd)

    assert takes(with_priority(6), "a.com/x", x_hrp_name="one") == "web"
    assert takes(with_priority(4), "a.com/x", x_hrp_name="one") == "route"


def test_policies_that_agree_hold_together() -> None:
    table = served(policy("a", priority=1, vars=[HEADER]), policy("b", priority=1, vars=[["arg_a", "==", "1"]]))
    assert takes(table, x_hrp_name="one") is None
    assert takes(table, "a.com/?a=1", x_hrp_name="one") == "web"
    assert told(table, "a") == told(table, "b") == []


def test_of_policies_that_disagree_none_holds_and_all_are_told() -> None:
    table = served(policy("a", priority=1, vars=[HEADER]), policy("b", priority=2))
    assert takes(table) == "web"
    assert told(table, "a") == told(table, "b") == [("Conflicted", "spec.targetRefs[0]")]
    (problem,) = table.problems("a")
    assert problem.message == (
        "Ingress default/web has HTTPRoutePolicy default/b with priority 2 too, and here it is 1; until they agree "
        "none of these policies holds there"
    )


def test_a_policy_that_disagrees_about_one_ingress_holds_for_another() -> None:
    both = policy("both", {}, {"name": "other"}, vars=[HEADER])
    table = served(both, policy("b", priority=2), ingress("other", host="b.com"))
    assert takes(table) == "web"
    assert takes(table, "b.com/") is None
    assert table.is_accepted("both")


def test_an_ingress_that_is_not_there_is_told() -> None:
    table = served(policy("policy", {"name": "gone"}))
    (problem,) = table.problems("policy")
    assert (problem.reason, problem.field) == ("TargetNotFound", "spec.targetRefs[0]")
    assert problem.message == "Ingress default/gone not found"


@pytest.mark.parametrize(
    "target",
    [{"group": "apps", "kind": "HTTPRoute"}, {"group": "", "kind": "Service"}, {"group": "", "kind": "Ingress"}],
)
def test_what_can_be_no_target_is_refused(target: dict[str, str]) -> None:
    table = served(policy("policy", {"name": "web", **target}, vars=[HEADER]))
    assert told(table) == [("UnsupportedTarget", "spec.targetRefs[0].kind")]
    assert not table.is_accepted("policy")


def test_a_section_of_an_ingress_is_not_looked_at() -> None:
    table = served(policy("policy", {"sectionName": "rule"}, vars=[HEADER]))
    assert takes(table) is None
    assert told(table) == [("UnsupportedField", "spec.targetRefs[0].sectionName")]
    assert table.is_accepted("policy")


def test_an_ingress_of_another_class_is_none_of_our_business() -> None:
    theirs = ingress("web", host="a.com", class_name="nginx")
    table = Translated(theirs, policy(vars=[HEADER]), ingress_class("nginx", "k8s.io/ingress-nginx"))
    assert all(ref.name != "policy" for ref in [*table.offline.problems, *table.offline.foreign])
    ours = Translated(
        ingress("web", host="a.com", class_name="apisix"),
        policy(vars=[HEADER]),
        ingress_class("apisix", APISIX),
        settings=TranslationSettings(controller_names=frozenset({APISIX})),
    )
    assert ours.is_accepted("policy")
    assert takes(ours) is None


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"vars": [["arg_a", "like", "1"]]}, "spec.vars[0]"),
        ({"vars": [HEADER, ["arg_a", ">", "many"]]}, "spec.vars[1]"),
        ({"vars": [["arg_a", ">", "inf"]]}, "spec.vars[0]"),
        ({"vars": [["arg_a", "~~", "(?=x)"]]}, "spec.vars[0]"),
        ({"vars": [["nobody_knows", "==", "1"]]}, "spec.vars[0]"),
        ({"vars": ["OR", ["arg_a", "==", "1"], "x"]}, "spec.vars"),
        ({"vars": "arg_a"}, "spec.vars"),
        ({"priority": "high"}, "spec.priority"),
    ],
)
def test_requests_are_refused_while_nobody_can_tell_which_are_meant(spec: Any, field: str) -> None:
    table = served(policy(**spec))
    errors = [one for one in table.problems("policy") if one.severity is Severity.ERROR]
    assert [one.field for one in errors] == [field]
    asked = table.ask("GET", "a.com/")
    assert asked.winner is not None
    refusal = table.upstream("a/default/Ingress/web/refused").unavailable
    assert refusal == "Ingress default/web refuses requests: HTTPRoutePolicy default/policy cannot be followed"


def test_the_service_of_the_ingress_is_balanced_by_a_policy_of_its_own() -> None:
    shaping = {"targetRefs": [{"group": "", "kind": "Service", "name": "api"}], "passHost": "node"}
    table = Translated(
        ingress("web", host="a.com", service="api"),
        service("api"),
        policy(vars=[HEADER]),
        resource("BackendTrafficPolicy", "api", shaping, version="v1alpha1"),
    )
    host = table.host("a.com")
    assert host is not None
    assert host.routes[0].backends[0].upstream == "a/default/api:80/policy"
    assert host.routes[0].when is not None
