"""What a gateway imports before anything asks for it: each of its workers holds that in memory."""

import subprocess
import sys

import pytest


@pytest.mark.parametrize(
    "heavy",
    [
        *("redis", "aiokafka", "graphql", "defusedxml", "python_multipart", "jsonschema_rs"),
        "kubernetes_asyncio",
    ],
)
def test_a_gateway_starts_without_what_few_need(heavy: str) -> None:
    code = "import sys, headgate.gateway.__main__, headgate.gateway.worker.process; print(*sys.modules, sep='\\n')"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "headgate.gateway.worker.process" in done.stdout.split()
    assert heavy not in done.stdout.split()
