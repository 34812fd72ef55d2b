"""Pods of the demo backend, as even a namespace that enforces the restricted Pod Security Standard lets them in."""

import os
from typing import Any

import pytest

from fakes.kubernetes.real import RealCluster

TAG = os.environ.get("TAG") or "latest"
"""Of the images, which are never pulled."""
IMAGE = f"headgate/headgate:{TAG}"
"""Holds the demo backend."""
PORT = 8080
_NOT_THERE = {"ErrImageNeverPull", "ErrImagePull", "ImagePullBackOff", "InvalidImageName"}


def backend(name: str, app: str) -> dict[str, Any]:
    """A pod whose answers say its name, of those that a Service selects by `app`."""
    restricted = {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
        "runAsNonRoot": True,
        "seccompProfile": {"type": "RuntimeDefault"},
    }
    container = {
        "name": "backend",
        "image": IMAGE,
        "imagePullPolicy": "Never",
        "args": ["demo-backend", f"--name={name}", f"--port={PORT}", "--host=0.0.0.0"],
        "securityContext": restricted,
        # As patient as a busy machine may need.
        "readinessProbe": {"tcpSocket": {"port": PORT}, "periodSeconds": 1, "timeoutSeconds": 20},
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {"app": app}},
        "spec": {"containers": [container], "terminationGracePeriodSeconds": 1},
    }


def backends(app: str) -> dict[str, Any]:
    """The Service of such pods."""
    spec = {"ports": [{"name": "http", "port": 80, "targetPort": PORT}], "selector": {"app": app}}
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": app}, "spec": spec}


async def is_ready(cluster: RealCluster, name: str) -> bool:
    """Whether a pod is ready; skips the test where its image is not on the node."""
    return ready(await cluster.get("pods", name))


def ready(pod: dict[str, Any]) -> bool:
    """Whether a pod is ready; skips the test where an image of it is not on the node."""
    for one in pod["status"].get("containerStatuses", ()):
        if one.get("state", {}).get("waiting", {}).get("reason") in _NOT_THERE:
            pytest.skip(f"the node does not have the image {one['image']}: docs/cluster-test.md says how it gets there")
    return ("Ready", "True") in {(one["type"], one["status"]) for one in pod["status"].get("conditions", ())}
