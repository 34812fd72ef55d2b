"""What commands import before they do anything: most of the time that a short answer takes."""

import subprocess
import sys
from pathlib import Path

import pytest

CLIENTS = ("nats", "aiohttp", "redis", "kubernetes_asyncio", "headgate.common.bus.connection")
QUICKSTART = Path(__file__).parents[3] / "examples" / "quickstart"


def _imported_by(*arguments: str) -> list[str]:
    code = f"import sys, headgate.cli.__main__ as m; m.main({arguments!r}); print(*sys.modules, file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stderr.split()


@pytest.mark.parametrize(
    ("arguments", "needed"),
    [
        (("check", str(QUICKSTART)), "headgate.translator.offline"),
        (
            ("explain", "GET", "http://demo.localhost/red", "--manifests", str(QUICKSTART)),
            "headgate.gateway.table.explaining.explain",
        ),
    ],
    ids=["check", "explain"],
)
def test_a_command_that_asks_files_imports_no_client(arguments: tuple[str, ...], needed: str) -> None:
    imported = _imported_by(*arguments)
    assert needed in imported  # the command ran
    assert not {name for name in CLIENTS if name in imported}


def test_plugins_are_imported_where_the_route_has_one(tmp_path: Path) -> None:
    manifest = tmp_path / "web.yaml"
    manifest.write_text(WITH_PLUGIN)
    imported = _imported_by("explain", "GET", "http://a.example/", "--manifests", str(manifest))
    assert "headgate.gateway.plugins.runtime.preview" in imported


def test_a_plan_that_a_translator_makes_imports_no_translator() -> None:
    imported = _imported_by("plan", str(QUICKSTART), "--nats-url=nats://127.0.0.1:1")
    assert "headgate.watcher.sources.manifests.files" in imported
    rest = ("headgate.translator", "headgate.common.plugins.catalogue")
    assert not {name for name in imported if name.startswith(rest)}


def test_a_command_is_imported_without_the_collector_of_cycles() -> None:
    code = (
        "import gc, click, headgate.cli.__main__ as m; group = m.build(); before = gc.get_stats()\n"
        "assert group.get_command(click.Context(group), 'audit')\n"
        "print(gc.isenabled(), [now['collections'] - was['collections'] for was, now in zip(before, gc.get_stats())])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "True [0, 0, 0]\n"


WITH_PLUGIN = """\
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata:
  name: web
  namespace: default
  annotations: {k8s.apisix.apache.org/enable-cors: "true"}
spec:
  ingressClassName: headgate
  rules:
  - host: a.example
    http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: web, port: {number: 80}}}}]}
"""
