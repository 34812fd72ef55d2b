"""The manifests in `deploy/manifests/`, which the chart renders: what each mode may do, and how its pods are kept."""

import re
import subprocess
import sys
from collections.abc import Iterator
from copy import deepcopy
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from headgate.common.service.settings import ServiceSettings, load_settings
from headgate.console.settings import ConsoleSettings
from headgate.gateway.settings import GatewaySettings
from headgate.translator.settings import TranslatorSettings
from headgate.watcher.settings import WatcherSettings

ROOT = Path(__file__).parents[3]
MANIFESTS = ROOT / "deploy" / "manifests"
CHART = ROOT / "deploy" / "helm" / "headgate"
MODES = ("all-in-one", "all-in-one-console", "central", "edge", "edge-leaf", "tenant")
SETTINGS: dict[str, type[ServiceSettings]] = {
    "watcher": WatcherSettings,
    "translator": TranslatorSettings,
    "gateway": GatewaySettings,
    "console": ConsoleSettings,
}
OF_COMMANDS = {"console": ("class_names", "controller_names")}
"""Settings of the translator that commands take which a service runs."""
JsonObject = dict[str, Any]

READ = ("get", "list", "watch")
LISTED = ("list", "watch")
ROUTING = {
    "networking.k8s.io/ingresses": READ,
    "networking.k8s.io/ingresses/status": ("patch",),
    "services": READ,
    "services/status": ("patch",),
    "secrets": LISTED,
    "configmaps": LISTED,
    "discovery.k8s.io/endpointslices": LISTED,
    "gateway.networking.k8s.io/gateways": READ,
    "gateway.networking.k8s.io/gateways/status": ("patch",),
    "gateway.networking.k8s.io/listenersets": READ,
    "gateway.networking.k8s.io/listenersets/status": ("patch",),
    "gateway.networking.k8s.io/httproutes": READ,
    "gateway.networking.k8s.io/grpcroutes": READ,
    "gateway.networking.k8s.io/backendtlspolicies": READ,
    "gateway.networking.k8s.io/backendtlspolicies/status": ("patch",),
    "gateway.networking.x-k8s.io/xbackendtrafficpolicies": READ,
    "gateway.networking.x-k8s.io/xbackendtrafficpolicies/status": ("patch",),
    "gateway.networking.k8s.io/udproutes": READ,
    "gateway.networking.k8s.io/udproutes/status": ("patch",),
    "gateway.networking.k8s.io/tcproutes": READ,
    "gateway.networking.k8s.io/tcproutes/status": ("patch",),
    "gateway.networking.k8s.io/tlsroutes": READ,
    "gateway.networking.k8s.io/tlsroutes/status": ("patch",),
    "gateway.networking.k8s.io/httproutes/status": ("patch",),
    "gateway.networking.k8s.io/grpcroutes/status": ("patch",),
    "gateway.networking.k8s.io/referencegrants": LISTED,
    "headgate.dev/plugins": READ,
    "headgate.dev/plugins/status": ("patch",),
    "multicluster.x-k8s.io/serviceimports": LISTED,
    "apisix.apache.org/*": READ,
    "apisix.apache.org/*/status": ("patch",),
    "traefik.io/*": READ,
    "traefik.io/*/status": ("patch",),
    "traefik.containo.us/*": READ,
    "traefik.containo.us/*/status": ("patch",),
    "events.k8s.io/events": ("create",),
}
OF_THE_CLUSTER = {
    "networking.k8s.io/ingressclasses": READ,
    "namespaces": LISTED,
    "apiextensions.k8s.io/customresourcedefinitions gatewayclasses.gateway.networking.k8s.io": LISTED,
    "gateway.networking.k8s.io/gatewayclasses": READ,
    "gateway.networking.k8s.io/gatewayclasses/status": ("patch",),
    "multicluster.x-k8s.io/serviceexports": READ,
    "multicluster.x-k8s.io/serviceexports/status": ("patch",),
}
LEASE = {"coordination.k8s.io/leases headgate-watcher": ("get", "patch")}
CERTIFICATE = {"secrets headgate-admission": ("get", "patch")}
WEBHOOK = {
    "admissionregistration.k8s.io/validatingwebhookconfigurations headgate-headgate": ("get", "patch"),
}
MADE = {"secrets headgate-generated": ("get", "patch")}
RIGHTS: dict[str, dict[tuple[str, str], dict[str, tuple[str, ...]]]] = {
    "all-in-one": {
        ("headgate-watcher", "the cluster"): ROUTING | OF_THE_CLUSTER,
        ("headgate-watcher", "headgate"): LEASE,
        ("headgate-secrets", "headgate"): MADE,
    },
    "central": {("headgate-secrets", "headgate"): MADE},
    "edge": {
        ("headgate-watcher", "the cluster"): ROUTING | OF_THE_CLUSTER | WEBHOOK,
        ("headgate-watcher", "headgate"): LEASE | CERTIFICATE,
    },
    "edge-leaf": {
        ("headgate-watcher", "the cluster"): ROUTING | OF_THE_CLUSTER,
        ("headgate-watcher", "headgate"): LEASE,
        ("headgate-secrets", "headgate"): MADE,
    },
    "tenant": {("headgate-watcher", "team-a"): ROUTING | LEASE, ("headgate-secrets", "team-a"): MADE},
}
RIGHTS["all-in-one-console"] = RIGHTS["all-in-one"]
"""All that accounts may do, by mode, account and where: `group/resource name` to verbs. Nobody else may do anything."""


def objects(mode: str, *kinds: str) -> list[JsonObject]:
    """Return the objects of some kinds, or all."""
    return [one for one in deepcopy(rendered(mode)) if not kinds or one["kind"] in kinds]


@cache
def rendered(mode: str) -> list[JsonObject]:
    found = yaml.load_all((MANIFESTS / f"{mode}.yaml").read_text(), yaml.CSafeLoader)
    return [one for one in found if one]


def workloads(mode: str) -> list[JsonObject]:
    return objects(mode, "Deployment", "DaemonSet", "StatefulSet", "Job")


def component(workload: JsonObject) -> str:
    return str(workload["spec"]["template"]["metadata"]["labels"]["app.kubernetes.io/component"])


def services(mode: str) -> list[tuple[str, JsonObject]]:
    """Return component and pod of what runs our services, not NATS and not the Job."""
    pods = [(component(one), one["spec"]["template"]["spec"]) for one in workloads(mode)]
    return [(name, pod) for name, pod in pods if name in SETTINGS]


def granted(role: JsonObject) -> Iterator[tuple[str, tuple[str, ...]]]:
    for rule in role["rules"]:
        assert set(rule) <= {"apiGroups", "resources", "verbs", "resourceNames"}
        for group in rule["apiGroups"]:
            for resource in rule["resources"]:
                for name in rule.get("resourceNames", [""]):
                    kind = f"{group}/{resource}" if group else resource
                    yield f"{kind} {name}".strip(), tuple(rule["verbs"])


def rights(mode: str) -> dict[tuple[str, str], dict[str, tuple[str, ...]]]:
    """Return what `RIGHTS` lists, of the manifests."""
    roles = {(one["kind"], one["metadata"]["name"]): one for one in objects(mode, "Role", "ClusterRole")}
    found: dict[tuple[str, str], dict[str, tuple[str, ...]]] = {}
    for binding in objects(mode, "RoleBinding", "ClusterRoleBinding"):
        role = roles.pop((binding["roleRef"]["kind"], binding["roleRef"]["name"]))
        where = binding["metadata"].get("namespace", "the cluster")
        (subject,) = binding["subjects"]
        assert subject["kind"] == "ServiceAccount"
        holder = found.setdefault((subject["name"], where), {})
        for right, verbs in granted(role):
            assert right not in holder
            holder[right] = verbs
    assert roles == {}, "roles that nobody has"
    return found


def matches(selector: JsonObject, workload: JsonObject) -> bool:
    labels = workload["spec"]["template"]["metadata"]["labels"]
    return selector.items() <= labels.items()


@pytest.mark.parametrize("mode", MODES)
def test_each_account_has_exactly_the_rights_that_are_listed(mode: str) -> None:
    assert rights(mode) == RIGHTS[mode]


@pytest.mark.parametrize("mode", MODES)
def test_every_binding_is_for_an_account_that_a_pod_uses(mode: str) -> None:
    used = {one["spec"]["template"]["spec"]["serviceAccountName"] for one in workloads(mode)}
    made = {one["metadata"]["name"] for one in objects(mode, "ServiceAccount")}
    assert made == used
    assert {account for account, _ in rights(mode)} <= used


def test_a_tenant_has_nothing_that_is_not_in_its_namespace() -> None:
    assert {one["metadata"].get("namespace") for one in objects("tenant")} == {"team-a"}


@pytest.mark.parametrize("mode", MODES)
def test_a_token_is_mounted_where_the_api_server_is_asked_and_nowhere_else(mode: str) -> None:
    for workload in workloads(mode):
        asks = component(workload) in ("watcher", "secrets")
        assert workload["spec"]["template"]["spec"]["automountServiceAccountToken"] is asks, component(workload)
    assert all(one["automountServiceAccountToken"] is False for one in objects(mode, "ServiceAccount"))


@pytest.mark.parametrize("mode", MODES)
def test_every_pod_meets_the_restricted_pod_security_standard(mode: str) -> None:
    for workload in workloads(mode):
        pod = workload["spec"]["template"]["spec"]
        security = pod["securityContext"]
        assert (security["runAsNonRoot"], security["seccompProfile"]) == (True, {"type": "RuntimeDefault"})
        assert security["runAsUser"] > 0
        assert not {"hostNetwork", "hostPID", "hostIPC", "initContainers", "ephemeralContainers"} & set(pod)
        for volume in pod.get("volumes", []):
            assert set(volume) & {"configMap", "emptyDir", "persistentVolumeClaim", "secret"}, volume
        for container in pod["containers"]:
            assert container["securityContext"] == {
                "allowPrivilegeEscalation": False,
                "readOnlyRootFilesystem": True,
                "capabilities": {"drop": ["ALL"]},
            }
            assert [port for port in container.get("ports", []) if port.get("hostPort")] == []


@pytest.mark.parametrize("mode", MODES)
def test_no_secret_comes_with_a_value_and_no_variable_holds_a_password(mode: str) -> None:
    assert [one for one in objects(mode, "Secret") if one.get("data") or one.get("stringData")] == []
    for workload in workloads(mode):
        for container in workload["spec"]["template"]["spec"]["containers"]:
            plain = [one["name"] for one in container.get("env", []) if "PASSWORD" in one["name"] and "value" in one]
            assert plain == []


@pytest.mark.parametrize("mode", MODES)
def test_every_image_has_a_version(mode: str) -> None:
    version = yaml.safe_load((CHART / "Chart.yaml").read_text())["appVersion"]
    for workload in workloads(mode):
        for container in workload["spec"]["template"]["spec"]["containers"]:
            name, _, tag = container["image"].partition(":")
            assert tag == (version if name.startswith("headgate/") else "2.15")


@pytest.mark.parametrize("mode", MODES)
def test_every_pod_has_one_network_policy_and_every_policy_a_pod(mode: str) -> None:
    policies = objects(mode, "NetworkPolicy")
    for workload in workloads(mode):
        found = [one for one in policies if matches(one["spec"]["podSelector"]["matchLabels"], workload)]
        assert len(found) == 1, component(workload)
        policies.remove(found[0])
        listening = {port["containerPort"] for each in containers(workload) for port in each.get("ports", [])}
        let_in = {port["port"] for rule in found[0]["spec"].get("ingress", []) for port in rule["ports"]}
        assert let_in <= listening
        assert listening - let_in <= {8222}, "NATS' page for probes, which come from the node"
    assert policies == []


@pytest.mark.parametrize("mode", MODES)
def test_no_policy_has_an_empty_list_which_servers_leave_out_so_that_each_apply_would_be_a_change(mode: str) -> None:
    for policy in objects(mode, "NetworkPolicy"):
        assert [] not in policy["spec"].values(), policy["metadata"]["name"]


@pytest.mark.parametrize("mode", MODES)
def test_policies_between_pods_name_pods_that_are_there(mode: str) -> None:
    for policy in objects(mode, "NetworkPolicy"):
        rules = [*policy["spec"].get("ingress", []), *policy["spec"].get("egress", [])]
        peers = [peer for rule in rules for peer in (*rule.get("from", []), *rule.get("to", []))]
        for peer in peers:
            labels = peer.get("podSelector", {}).get("matchLabels", {})
            assert any(matches(labels, workload) for workload in workloads(mode))


@pytest.mark.parametrize("mode", MODES)
def test_services_budgets_and_workloads_select_the_pods_of_one_component(mode: str) -> None:
    for one in objects(mode, "Service"):
        (chosen,) = (each for each in workloads(mode) if matches(one["spec"]["selector"], each))
        names = {port.get("name") for each in containers(chosen) for port in each.get("ports", [])}
        assert {port["targetPort"] for port in one["spec"]["ports"]} <= names
    for one in objects(mode, "PodDisruptionBudget", "Deployment", "StatefulSet"):
        selected = one["spec"]["selector"]["matchLabels"]
        assert len([each for each in workloads(mode) if matches(selected, each)]) == 1


@pytest.mark.parametrize("mode", MODES)
def test_replicas_keep_apart_also_where_nodes_have_no_zone(mode: str) -> None:
    for workload in workloads(mode):
        pod = workload["spec"]["template"]["spec"]
        assert "topologySpreadConstraints" not in pod, "without zones those that name nodes would be out of force"
        if workload["kind"] != "Job":
            ways = pod["affinity"]["podAntiAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"]
            terms = [way["podAffinityTerm"] for way in ways]
            keys = [term["topologyKey"] for term in terms]
            assert keys == ["kubernetes.io/hostname", "topology.kubernetes.io/zone"]
            for term in terms:
                selected = term["labelSelector"]["matchLabels"]
                assert [one for one in workloads(mode) if matches(selected, one)] == [workload]


@pytest.mark.parametrize("mode", MODES)
def test_every_variable_is_a_setting_and_its_value_is_taken(mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, pod in services(mode):
        with monkeypatch.context() as patched:
            (container,) = pod["containers"]
            assert container["image"].startswith(f"headgate/{name}:")
            for variable in container["env"]:
                known = {*SETTINGS[name].model_fields, *OF_COMMANDS.get(name, ())}
                assert variable["name"].removeprefix("HEADGATE_").lower() in known
                patched.setenv(variable["name"], variable.get("value", "of a Secret"))
            settings = load_settings(SETTINGS[name], [], program=name, summary="")
            mounted = {mount["mountPath"] for mount in container["volumeMounts"]}
            assert {str(path.parent) for path in files(settings)} | {str(settings.data_dir)} == mounted


@pytest.mark.parametrize("mode", MODES)
def test_pods_have_time_to_finish_what_is_under_way(mode: str) -> None:
    for _, pod in services(mode):
        environment = {one["name"]: one.get("value", "") for one in pod["containers"][0]["env"]}
        grace = float(environment["HEADGATE_GRACE_S"])
        assert float(environment.get("HEADGATE_DRAIN_DELAY_S", "0")) < grace < pod["terminationGracePeriodSeconds"]
        assert "lifecycle" not in pod["containers"][0], "images have no shell, and services drain by themselves"


@pytest.mark.parametrize("mode", ["edge", "tenant"])
def test_modes_without_servers_of_their_own_speak_tls_to_those_of_others(mode: str) -> None:
    assert objects(mode, "StatefulSet") == []
    for _, pod in services(mode):
        environment = {one["name"]: one.get("value") for one in pod["containers"][0]["env"]}
        assert str(environment["HEADGATE_NATS_URL"]).startswith("tls://")
        assert environment["HEADGATE_NATS_CA_FILE"]


def test_the_servers_of_an_edge_alone_know_the_way_to_the_centre_and_keep_nothing() -> None:
    (servers,) = objects("edge-leaf", "StatefulSet")
    mounted = {volume["name"]: volume for volume in servers["spec"]["template"]["spec"]["volumes"]}
    assert mounted.keys() == {"config", "tls", "hub-tls"}
    assert "volumeClaimTemplates" not in servers["spec"]
    for _, pod in services("edge-leaf"):
        urls = [one["value"] for one in pod["containers"][0]["env"] if one["name"] == "HEADGATE_NATS_URL"]
        named = [f"tls://headgate-nats-{number}.headgate-nats.headgate.svc:4222" for number in range(2)]
        assert urls == [",".join(named)]
        assert "hub" not in str(pod)
    policy = next(
        one
        for one in objects("edge-leaf", "NetworkPolicy")
        if matches(one["spec"]["podSelector"]["matchLabels"], servers)
    )
    assert [port["port"] for rule in policy["spec"]["egress"] for port in rule["ports"]] == [53, 53, 7422]


def test_a_tenant_logs_in_as_the_users_of_its_account_at_the_centre() -> None:
    (config,) = (one["data"]["nats-server.conf"] for one in objects("central", "ConfigMap"))
    account = config.partition("TEAM_A {")[2].partition("SYS {")[0]
    for name, pod in services("tenant"):
        environment = {one["name"]: one for one in pod["containers"][0]["env"]}
        user = environment["HEADGATE_NATS_USER"]["value"]
        assert user == f"{name}-team-a"
        assert environment["HEADGATE_NATS_PASSWORD"]["valueFrom"]["secretKeyRef"]["key"] == f"{user}-password"
        assert f"{{ user: {user}, " in account


def test_gateways_alone_hold_the_private_key() -> None:
    for mode in MODES:
        for name, pod in services(mode):
            volumes = [one["secret"] for one in pod["volumes"] if one["name"] == "sealing"]
            keys = [item["key"] for volume in volumes for item in volume["items"]]
            assert keys == {"watcher": ["gateway.pub"], "gateway": ["gateway.key"]}.get(name, [])


def test_the_chart_holds_what_it_was_copied_from() -> None:
    command = [sys.executable, str(MANIFESTS / "render.py"), "--check"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_every_value_is_described() -> None:
    page = (ROOT / "docs" / "helm.md").read_text()
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    assert [path for path in paths(values) if f"`{path}`" not in page] == []


def test_every_value_is_set_in_what_is_validated() -> None:
    given = [*yaml.safe_load((MANIFESTS / "options.yaml").read_text()).values()]
    given += [yaml.safe_load(path.read_text()) for path in (MANIFESTS / "values").glob("*.yaml")]
    tried = {path for values in given for path in paths(values)}
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    assert [path for path in paths(values) if not any(one == path or one.startswith(f"{path}.") for one in tried)] == []


def containers(workload: JsonObject) -> list[JsonObject]:
    found: list[JsonObject] = workload["spec"]["template"]["spec"]["containers"]
    return found


def files(settings: ServiceSettings) -> Iterator[Path]:
    """Every file below /etc that the settings name."""
    for value in settings.model_dump().values():
        for one in value if isinstance(value, list | tuple) else [value]:
            if str(one).startswith("/etc/"):
                yield Path(str(one))


def paths(values: JsonObject, before: str = "") -> Iterator[str]:
    """The values' names, `gateway.service.type`; of groups that are documented as one, the group's."""
    for name, value in values.items():
        path = f"{before}{name}"
        if isinstance(value, dict) and value and path not in AS_ONE and name != "resources":
            yield from paths(value, f"{path}.")
        else:
            yield path


AS_ONE = (
    "console.probes",
    "gateway.hostPorts",
    "gateway.service.ports",
    "gateway.service.nodePorts",
    "nats.image",
    "nats.auth.users",
    "nats.tls.certManager",
    "nats.expose",
    "nats.leafNodes.expose",
    "store.users",
    "admission.issuerRef",
    "grafana.labels",
)


def test_the_job_that_makes_secrets_has_another_name_where_its_spec_is_another() -> None:
    (before,) = (one for one in rendered("all-in-one") if one["kind"] == "Job")
    digest = before["metadata"]["name"].removeprefix("headgate-secrets-")
    assert re.fullmatch(r"[0-9a-f]{10}", digest)


def test_volumes_stay_when_the_release_goes() -> None:
    (servers,) = (one for one in rendered("all-in-one") if one["kind"] == "StatefulSet")
    assert servers["spec"]["persistentVolumeClaimRetentionPolicy"]["whenDeleted"] == "Retain"


def test_the_control_plane_is_redundant_by_default() -> None:
    replicas = {
        one["metadata"]["name"]: one["spec"]["replicas"]
        for one in rendered("all-in-one")
        if "replicas" in one.get("spec", {})
    }
    assert replicas == {
        "headgate-watcher": 2,
        "headgate-translator": 2,
        "headgate-gateway": 2,
        "headgate-nats": 3,
    }
