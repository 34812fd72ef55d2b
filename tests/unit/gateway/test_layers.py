"""The gateway's inner walls, for imports that only type checkers follow too: `lint-imports` leaves those out."""

import tomllib
from pathlib import Path

import pytest

from fakes.import_graph import import_graph

ROOT = Path(__file__).parents[3]
GATEWAY = "headgate.gateway"


@pytest.fixture(scope="module")
def graph():
    return import_graph(ROOT / "services" / "gateway", GATEWAY)


@pytest.fixture(scope="module")
def layers() -> list[list[str]]:
    """The parts of the gateway as the contract in `pyproject.toml` has them, the highest first."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    [contract] = [each for each in contracts if each.get("containers") == [GATEWAY]]
    return [[part.strip() for part in layer.split("|")] for layer in contract["layers"]]


def test_parts_import_only_those_below_them(graph, layers) -> None:
    level = {part: number for number, parts in enumerate(layers) for part in parts}
    wrong = []
    for name, imported in graph.items():
        for other in imported - {GATEWAY}:
            own, its = name.split(".")[2:3], other.split(".")[2:3]
            if own != its and own and level[own[0]] >= level[its[0]]:
                wrong.append(f"{name} imports {other}")
    assert wrong == []
