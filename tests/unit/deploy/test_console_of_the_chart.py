"""The console of the chart, as `deploy/manifests/all-in-one-console.yaml` has it."""

import re
from typing import Any

import yaml

from unit.deploy.test_manifests import CHART, objects, rendered

MODE = "all-in-one-console"


def of_console(*kinds: str) -> list[dict[str, Any]]:
    return [
        one
        for one in objects(MODE, *kinds)
        if one["metadata"]["labels"].get("app.kubernetes.io/component") == "console"
    ]


def test_there_is_none_unless_it_is_asked_for() -> None:
    assert yaml.safe_load((CHART / "values.yaml").read_text())["console"]["enabled"] is False
    assert "headgate-console" not in {one["metadata"]["name"] for one in rendered("all-in-one")}


def test_it_is_one_user_of_nats_with_the_inbox_of_its_rights() -> None:
    (deployment,) = of_console("Deployment")
    assert deployment["spec"]["replicas"] == 1
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    said = {one["name"]: one.get("value") for one in container["env"]}
    assert (said["HEADGATE_NATS_USER"], said["HEADGATE_NATS_INBOX"]) == ("operator", "_INBOX.operator")
    (config,) = (one["data"] for one in objects(MODE, "ConfigMap"))
    assert (
        "{ user: operator, password: $OPERATOR_PASSWORD, permissions: $OPERATOR_RIGHTS }" in config["nats-server.conf"]
    )
    assert re.search(r"\nOPERATOR_RIGHTS: \{.*?_INBOX\.operator\.>", config["roles.conf"], re.DOTALL)


def test_its_commands_take_the_objects_that_the_translator_takes() -> None:
    (deployment,) = of_console("Deployment")
    (translator,) = (one for one in objects(MODE, "Deployment") if one["metadata"]["name"] == "headgate-translator")
    of_both = [
        {one["name"]: one.get("value") for one in each["spec"]["template"]["spec"]["containers"][0]["env"]}
        for each in (deployment, translator)
    ]
    assert [said["HEADGATE_CLASS_NAMES"] for said in of_both] == ["headgate", "headgate"]


def test_it_asks_gateways_at_their_admin_sites_and_they_let_nobody_else_of_the_release_in() -> None:
    (service,) = (one for one in objects(MODE, "Service") if one["metadata"]["name"] == "headgate-gateway-admin")
    assert service["spec"]["type"] == "ClusterIP"
    (deployment,) = of_console("Deployment")
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    said = {one["name"]: one.get("value") for one in container["env"]}
    assert said["HEADGATE_GATEWAY_URL"] == "http://headgate-gateway-admin.headgate.svc:9080"
    (policy,) = (one for one in objects(MODE, "NetworkPolicy") if one["metadata"]["name"] == "headgate-gateway")
    peers = [peer for rule in policy["spec"]["ingress"] for peer in rule.get("from", [])]
    components = [peer["podSelector"]["matchLabels"] for peer in peers if "podSelector" in peer]
    assert [one["app.kubernetes.io/component"] for one in components] == ["console"]


def test_it_stays_reachable_while_nats_is_away_and_is_reached_by_way_of_gateways() -> None:
    (deployment,) = of_console("Deployment")
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    assert container["readinessProbe"]["httpGet"] == {"path": "/healthz", "port": "admin"}
    (policy,) = of_console("NetworkPolicy")
    (rule,) = (one for one in policy["spec"]["ingress"] if one["ports"] == [{"port": 9090}])
    assert [one["podSelector"]["matchLabels"]["app.kubernetes.io/component"] for one in rule["from"]] == ["gateway"]


def test_people_come_from_a_secret_of_which_nothing_else_is_mounted() -> None:
    (deployment,) = of_console("Deployment")
    (volume,) = (one["secret"] for one in deployment["spec"]["template"]["spec"]["volumes"] if one["name"] == "people")
    assert (volume["secretName"], volume["items"]) == (
        "headgate-console",
        [{"key": "people.toml", "path": "people.toml"}],
    )
