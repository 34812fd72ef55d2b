"""Serves a cluster by `headgate up` and runs the conformance suite of Gateway API on it; `conformance` calls this.

    PYTHONPATH=tests python tests/cluster/gateway_api/run.py FOLDER CRDS [FLAGS OF THE SUITE...]

The definitions are applied, and a GatewayClass `headgate` made; both stay. The ports of the suite's Gateways are opened on
all addresses of this machine, so that nothing else may listen on 80, 443 and the others. The suite's report, its output
and the log of `up` are in FOLDER. The exit code is that of the suite.
"""

import asyncio
import os
import sys
from pathlib import Path

import yaml

from fakes.kubernetes.real import RealCluster
from fakes.stack import Stack

START_S = 300.0
CLASS = "headgate"
CONTROLLER = "headgate.dev/gateway-controller"


async def apply_definitions(cluster: RealCluster, folder: Path) -> None:
    """Apply upstream's definitions, and the policies that guard them."""
    for path in sorted(folder.glob("*.yaml")):
        for manifest in yaml.safe_load_all(path.read_text()):
            group, plural = {
                "CustomResourceDefinition": ("apiextensions.k8s.io", "customresourcedefinitions"),
                "ValidatingAdmissionPolicy": ("admissionregistration.k8s.io", "validatingadmissionpolicies"),
                "ValidatingAdmissionPolicyBinding": ("admissionregistration.k8s.io", "validatingadmissionpolicybindings"),
            }.get((manifest or {}).get("kind"), ("", ""))
            if not group or "safe-upgrades" in manifest["metadata"]["name"]:
                continue  # which keeps channels from being exchanged, as a test may
            await apply(cluster, f"/apis/{group}/v1/{plural}", manifest)


async def apply(cluster: RealCluster, path: str, manifest: dict[str, object]) -> None:
    """Apply an object by the server."""
    name = manifest["metadata"]["name"]  # type: ignore[index]
    query = {"fieldManager": "conformance", "force": "true"}
    await cluster.request("PATCH", f"{path}/{name}", manifest, query, "application/apply-patch+yaml")


async def main(folder: Path, definitions: Path, flags: list[str]) -> int:
    """Run it all."""
    kubeconfig = Path(os.environ["KUBECONFIG"])
    async with RealCluster(kubeconfig) as cluster:
        await apply_definitions(cluster, definitions)
        made = {
            "apiVersion": "gateway.networking.k8s.io/v1",
            "kind": "GatewayClass",
            "metadata": {"name": CLASS},
            "spec": {"controllerName": CONTROLLER},
        }
        for _ in range(100):
            try:
                await apply(cluster, "/apis/gateway.networking.k8s.io/v1/gatewayclasses", made)
                break
            except Exception:  # a definition is served some moments after it was taken
                await asyncio.sleep(0.2)
        environment = {"HEADGATE_PUBLISH_ADDRESSES": cluster.address, "HEADGATE_HTTP_HOST": "0.0.0.0", "HEADGATE_HTTPS_HOST": "0.0.0.0"}
        stack = Stack(kubeconfig=kubeconfig, environment=environment, start_within_s=START_S, extra=["--access-log=combined"])
        stack.http_port, stack.https_port = 80, 443
        async with stack:
            suite = await asyncio.create_subprocess_exec(
                str(folder / "suite"),
                "-test.v",
                "-test.timeout=60m",
                f"-gateway-class={CLASS}",
                "-cleanup-base-resources=false",
                "-allow-crds-mismatch=true",
                f"-report-output={folder / 'report.yaml'}",
                "-organization=headgate",
                "-project=headgate",
                "-url=https://github.com/headgate/headgate",
                "-version=development",
                "-contact=https://github.com/headgate/headgate/issues",
                *flags,
                env={**os.environ, "KUBECONFIG": str(kubeconfig)},
            )
            code = await suite.wait()
            (folder / "up.log").write_text(stack.log)
    return code


if __name__ == "__main__":
    sys.exit(asyncio.run(main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3:])))
