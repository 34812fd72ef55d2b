#!/usr/bin/env python3
"""Validate with kubeconform what the chart renders, and the other manifests that are shipped: `make validate`.

Each mode is linted and rendered with its values and with each of `options.yaml` besides. The schemas are those of
`schemas.py`: nothing is fetched. A combination that the chart refuses has to be in `REFUSED`, with what it says.
"""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import yaml
from deploy.manifests.render import CHART, MANIFESTS, NAMESPACES, NO_HELM
from deploy.manifests.schemas import schema_of, schemas, shipped

NO_KUBECONFORM = (
    "kubeconform is needed for `make validate`, and is not there. It is a Go module:\n"
    "    go install github.com/yannh/kubeconform/cmd/kubeconform@v0.8.0\n"
    "or name it: KUBECONFORM=/path/to/kubeconform make validate"
)
WEBHOOKS = (
    "a-webhook-with-a-certificate-of-its-own",
    "a-webhook-with-cert-manager",
    "a-webhook-with-a-certificate-of-others",
)
CONSOLES = (
    "placed-and-labelled",
    "everything-of-pods",
    "a-console-on-a-node-port",
    "a-console-of-port-forward-alone",
    "a-console-with-a-provider",
)
REFUSED = {
    **{("edge-leaf", name): "console.enabled: leaf nodes have no user" for name in CONSOLES},
    **{(mode, "a-console-for-nobody"): "console.peopleSecret: the Secret with" for mode in NAMESPACES},
    **{(mode, "a-console-for-changes-by-nobody"): "console.actions: whoever changes" for mode in NAMESPACES},
    **{("tenant", name): "admission.enabled: a webhook has no namespace" for name in WEBHOOKS},
    **{("central", name): "admission.enabled: the watchers answer the webhook" for name in WEBHOOKS},
    ("central", "certificates-that-are-ordered"): "sealing.existingSecret: without gateways",
    (
        "central",
        "certificates-that-are-ordered-with-an-account-of-ones-own",
    ): "sealing.existingSecret: without gateways",
    ("central", "nats-without-users"): "nats.auth.enabled: leaf nodes and tenants are told apart",
    ("edge-leaf", "nats-without-users"): "nats.auth.enabled: leaf nodes and tenants are told apart",
    ("edge-leaf", "nats-for-leaf-nodes-and-tenants"): "nats.leafNodes, nats.tenants: are for servers that store",
    **{(mode, "two-servers"): "nats.replicas: two servers" for mode in NAMESPACES if mode != "edge-leaf"},
}


def main() -> int:
    """Validate everything; say what is wrong with what."""
    helm, kubeconform = (program(name) for name in ("helm", "kubeconform"))
    options = yaml.safe_load((MANIFESTS / "options.yaml").read_text())
    failed: list[str] = []
    with TemporaryDirectory() as folder:
        work = Path(folder)
        for each in ("schemas", "rendered"):
            (work / each).mkdir()
        write_schemas(work / "schemas")
        for mode in NAMESPACES:
            for name, values in options.items():
                (work / "values.yaml").write_text(yaml.safe_dump(values))
                done = rendered(helm, mode, work / "values.yaml", is_linted=not values)
                wanted = REFUSED.get((mode, name))
                if wanted is None and done.returncode == 0:
                    (work / "rendered" / f"{mode}-{name}.yaml").write_text(done.stdout)
                    failed += [f"mode {mode}, {name}: {each}" for each in idle_budgets(done.stdout)]
                elif wanted is None or wanted not in done.stderr:
                    said = (done.stderr or done.stdout).strip() if done.returncode else "is not refused"
                    failed.append(f"mode {mode}, {name}: {said}")
        done = validated(kubeconform, work / "schemas", [work / "rendered", *shipped()])
    print(done.stdout.strip())
    print("\n".join([*failed, done.stderr.strip()]).strip(), file=sys.stderr)
    return 1 if failed or done.returncode else 0


def program(name: str) -> str:
    """Return a program, or end with how to get it."""
    found = shutil.which(os.environ.get(name.upper(), name))
    if found is None:
        sys.exit(NO_HELM.replace("make manifests", "make validate") if name == "helm" else NO_KUBECONFORM)
    return found


def rendered(helm: str, mode: str, values: Path, *, is_linted: bool) -> "subprocess.CompletedProcess[str]":
    """Render the chart with a mode's values and further ones, and lint it before."""
    given = ["--namespace", NAMESPACES[mode], "--kube-version", "1.34.0"]
    given += ["--values", str(MANIFESTS / "values" / f"{mode}.yaml"), "--values", str(values)]
    if is_linted and (done := run(helm, "lint", "--strict", "--quiet", str(CHART), *given)).returncode:
        return done
    return run(helm, "template", "headgate", str(CHART), *given)


def idle_budgets(rendered: str) -> list[str]:
    """Return what is wrong with budgets for disruption: those that Kubernetes cannot count refuse every eviction."""
    found = [one for one in yaml.safe_load_all(rendered) if one]
    scaled = [one["spec"]["selector"] for one in found if one["kind"] in ("Deployment", "StatefulSet")]
    budgets = [one for one in found if one["kind"] == "PodDisruptionBudget"]
    return [
        f"PodDisruptionBudget {one['metadata']['name']}: is for no Deployment or StatefulSet"
        for one in budgets
        if one["spec"]["selector"] not in scaled
    ]


def write_schemas(folder: Path) -> None:
    """Write each kind's schema to a file, as kubeconform looks for it."""
    for kind in schemas()["kinds"]:
        version, _, name = kind.rpartition(" ")
        group, _, number = version.rpartition("/")
        (folder / f"{group or number}_{number}_{name.lower()}.json").write_text(json.dumps(schema_of(kind)))


def validated(kubeconform: str, schemas_at: Path, paths: list[Path]) -> "subprocess.CompletedProcess[str]":
    """Have kubeconform look at files and folders."""
    location = schemas_at / "{{ .Group }}_{{ .ResourceAPIVersion }}_{{ .ResourceKind }}.json"
    return run(kubeconform, "-strict", "-summary", "-schema-location", str(location), *map(str, paths))


def run(*command: str) -> "subprocess.CompletedProcess[str]":
    """Run a program that does not look at a cluster."""
    environment = {name: value for name, value in os.environ.items() if name != "KUBECONFIG"}
    return subprocess.run(command, capture_output=True, text=True, check=False, env=environment)  # noqa: S603


if __name__ == "__main__":
    sys.exit(main())
