"""Serves a cluster by `headgate up` and runs the conformance suite of Gateway API on it; `conformance` calls this.

The definitions are applied, and a GatewayClass `headgate` is made; both stay. The ports of the suite's Gateways are
opened on this machine, so that nothing else may listen on 80, 443 and the others. The suite's report and the log of
`up` are left in the folder. The exit code is that of the suite.
"""

import asyncio
import os
import sys
from pathlib import Path

import yaml

from fakes.kubernetes.real import RealCluster
from fakes.stack import Stack
from headgate.common.resources import JsonObject
from headgate.translator.dialects.gateway_api.features import served_features
from headgate.watcher.errors import ApiStatusError

START_S = 300.0
CLASS = "headgate"
CONTROLLER = "headgate.dev/gateway-controller"


def definitions_in(folder: Path) -> list[JsonObject]:
    """Read upstream's definitions; not the policies that guard upgrades, which a test may undo."""
    found = [one for path in sorted(folder.glob("*.yaml")) for one in yaml.safe_load_all(path.read_text())]
    return [one for one in found if one and one.get("kind") == "CustomResourceDefinition"]


async def apply(cluster: RealCluster, path: str, manifest: JsonObject) -> None:
    """Apply an object by the server."""
    name = manifest["metadata"]["name"]
    query = {"fieldManager": "conformance", "force": "true"}
    await cluster.request("PATCH", f"{path}/{name}", manifest, query, "application/apply-patch+yaml")


async def until_features_are_shown(cluster: RealCluster) -> None:
    """Wait until the GatewayClass shows what this release serves: the suite takes its tests from that."""
    async with asyncio.timeout(START_S):
        while True:
            found = await cluster.request("GET", f"/apis/gateway.networking.k8s.io/v1/gatewayclasses/{CLASS}")
            shown = ((found or {}).get("status") or {}).get("supportedFeatures") or ()
            if [each["name"] for each in shown] == list(served_features(have_addresses=True, have_infrastructure=True)):
                return
            await asyncio.sleep(0.2)


async def main(folder: Path, definitions: Path, flags: list[str]) -> int:
    """Run it all."""
    kubeconfig = Path(os.environ["KUBECONFIG"])
    async with RealCluster(kubeconfig) as cluster:
        for definition in definitions_in(definitions):
            await apply(cluster, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition)
        made = {
            "apiVersion": "gateway.networking.k8s.io/v1",
            "kind": "GatewayClass",
            "metadata": {"name": CLASS},
            "spec": {"controllerName": CONTROLLER},
        }
        async with asyncio.timeout(START_S):
            while True:
                try:
                    await apply(cluster, "/apis/gateway.networking.k8s.io/v1/gatewayclasses", made)
                    break
                except ApiStatusError:  # a definition is served some moments after it was taken
                    await asyncio.sleep(0.2)
        stack = Stack(kubeconfig=kubeconfig, publish_address=cluster.address, start_within_s=START_S)
        stack.http_port, stack.https_port = 80, 443
        async with stack:
            await until_features_are_shown(cluster)
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
                "-url=https://headgate.dev",
                "-version=development",
                "-contact=https://headgate.dev",
                *flags,
                env={**os.environ, "KUBECONFIG": str(kubeconfig)},
            )
            code = await suite.wait()
            (folder / "up.log").write_text(stack.log)
    return code


if __name__ == "__main__":
    sys.exit(asyncio.run(main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3:])))
