#!/usr/bin/env python3
"""Write the manifests of each mode of the chart, and the copies of other files that the chart holds: `make manifests`.

`--check` compares the copies, which takes no helm, and, where helm is there, the manifests too.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CHART = ROOT / "deploy" / "helm" / "headgate"
MANIFESTS = ROOT / "deploy" / "manifests"
NAMESPACES = {
    "all-in-one": "headgate",
    "all-in-one-console": "headgate",
    "central": "headgate",
    "edge": "headgate",
    "edge-leaf": "headgate",
    "tenant": "team-a",
}
COPIES = {
    "crds": ("crds", "*.yaml"),
    "files/nats": ("deploy/nats", "*.conf"),
    "files/grafana": ("deploy/grafana", "*.json"),
    "files/prometheus": ("deploy/prometheus", "headgate.rules.yaml"),
}
NATS_FILES = ("roles.conf", "watcher-local.conf", "edge-local.conf", "leaf-roles.conf")
HEAD = (
    "# Made by `make manifests` of the chart in deploy/helm/headgate and values/{mode}.yaml; docs/helm.md says more.\n"
)
NO_HELM = (
    "helm is needed for `make manifests`, and is not there. It is a Go module:\n"
    "    go install helm.sh/helm/v3/cmd/helm@v3.22.0    # or https://helm.sh/docs/intro/install/\n"
    "or name it: HELM=/path/to/helm make manifests"
)


def copies() -> dict[Path, bytes]:
    """Return what the chart's copies of other files should hold, by their paths."""
    found = {}
    for folder, (source, pattern) in COPIES.items():
        for path in sorted((ROOT / source).rglob(pattern)):
            if folder != "files/nats" or path.name in NATS_FILES:
                found[CHART / folder / path.name] = path.read_bytes()
    return found


def existing_copies() -> set[Path]:
    """Return the files in the folders of copies."""
    return {path for folder in COPIES for path in (CHART / folder).glob("*") if path.is_file()}


def render(helm: str, mode: str, *options: str) -> str:
    """Render a mode, with further options of helm, as `kubectl apply` takes it."""
    command = [helm, "template", "headgate", str(CHART), "--namespace", NAMESPACES[mode], "--kube-version", "1.34.0"]
    command += ["--values", str(MANIFESTS / "values" / f"{mode}.yaml"), *options]
    environment = {name: value for name, value in os.environ.items() if name != "KUBECONFIG"}
    done = subprocess.run(  # noqa: S603 - helm, of arguments that stand above
        command, capture_output=True, text=True, check=False, env=environment
    )
    if done.returncode:
        sys.exit(f"mode {mode}: {done.stderr.strip()}")
    return HEAD.format(mode=mode) + done.stdout.replace(
        "app.kubernetes.io/managed-by: Helm", "app.kubernetes.io/managed-by: kubectl"
    )


def main() -> int:
    """Write, or compare and say what differs."""
    is_check = "--check" in sys.argv[1:]
    wanted = copies()
    stale = [path for path in existing_copies() if path not in wanted]
    if not is_check:
        for path in stale:
            path.unlink()
        write(wanted)
    else:
        stale += [path for path, content in wanted.items() if not path.exists() or path.read_bytes() != content]
    helm = shutil.which(os.environ.get("HELM", "helm"))
    if helm is None and not is_check:
        sys.exit(NO_HELM)
    rendered = {MANIFESTS / f"{mode}.yaml": render(helm, mode).encode() for mode in NAMESPACES} if helm else {}
    if not is_check:
        write(rendered)
        return 0
    stale += [path for path, content in rendered.items() if not path.exists() or path.read_bytes() != content]
    for path in sorted(stale):
        print(f"{path.relative_to(ROOT)} is not as its source has it: run `make manifests`", file=sys.stderr)
    return 1 if stale else 0


def write(files: dict[Path, bytes]) -> None:
    """Write files, each into its folder."""
    for path, content in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


if __name__ == "__main__":
    sys.exit(main())
