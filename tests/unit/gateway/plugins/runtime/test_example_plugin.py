"""The package in `examples/plugin`, found as an installed one is: by its metadata on the import path."""

import sys
import tomllib
from importlib.metadata import entry_points
from pathlib import Path

import pytest

from headgate.common.sealing import ClusterValue
from headgate.common.table import PluginUse
from headgate.gateway.plugins.interface import PluginServices
from headgate.gateway.plugins.runtime.chain import PluginChain
from headgate.gateway.plugins.runtime.registry import ENTRY_POINT_GROUP, PluginRegistry
from unit.gateway.plugins.running import exchanged, request, unsealed

PACKAGE = Path(__file__).parents[5] / "examples" / "plugin"


@pytest.fixture
def registry(tmp_path, monkeypatch) -> PluginRegistry:
    """Install the package as pip does, without pip: its folder and its metadata on the path."""
    project = tomllib.loads((PACKAGE / "pyproject.toml").read_text())["project"]
    metadata = tmp_path / "headgate_maintenance-0.1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n"
    )
    points = project["entry-points"][ENTRY_POINT_GROUP]
    lines = [f"[{ENTRY_POINT_GROUP}]", *(f"{name} = {place}" for name, place in points.items())]
    (metadata / "entry_points.txt").write_text("\n".join(lines))
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.syspath_prepend(str(PACKAGE))
    monkeypatch.delitem(sys.modules, "headgate_maintenance", raising=False)
    return PluginRegistry()


def made(registry: PluginRegistry, use: PluginUse) -> PluginChain:
    chain = registry.chain([use], PluginServices(), unsealed)
    assert chain is not None
    return chain


def test_installed_package_is_found_beside_the_built_in_plugins(registry) -> None:
    assert "maintenance" in [point.name for point in entry_points(group=ENTRY_POINT_GROUP)]
    assert {"maintenance", "cors"} <= set(registry.names)


async def test_writes_are_refused_and_reads_go_on(registry) -> None:
    plugins = made(registry, PluginUse(name="maintenance", config={"retry_after_s": 60}))
    assert (await exchanged(plugins, request())).status == 200
    refused = await exchanged(plugins, request(method="POST"))
    assert refused.status == 503
    assert refused.headers.get("Retry-After") == "60"


async def test_pass_from_a_secret_opens_the_door(registry) -> None:
    use = PluginUse(name="maintenance", secrets={"pass_value": ClusterValue(boxes={"r": "sesame"})})
    given = request("/", [("X-Maintenance-Pass", "sesame")], method="POST")
    assert (await exchanged(made(registry, use), given)).status == 200
    assert "X-Maintenance-Pass" not in given.headers
