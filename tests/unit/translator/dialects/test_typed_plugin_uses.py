"""What dialects say of plugins is a typed configuration; only what a user wrote stays an object of JSON."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import headgate.translator

_ROOT = Path(next(iter(headgate.translator.__path__)))
MODULES = sorted((*(_ROOT / "dialects").rglob("*.py"), *(_ROOT / "annotations").rglob("*.py")))


def handmade(source: str) -> Iterator[int]:
    """Yield the lines where a use of a plugin is made of names and values that stand in the code."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "PluginUse":
            given = [*node.args, *(keyword.value for keyword in node.keywords if keyword.arg in ("name", "config"))]
            if not all(isinstance(value, ast.Name | ast.Attribute) for value in given):
                yield node.lineno


@pytest.mark.parametrize(
    "source",
    [
        'PluginUse(name="cors")',
        'PluginUse(name=name, config={"max_age": 5})',
        "PluginUse(name=name, config=dict(max_age=5))",
        'PluginUse(name=name, config=written | {"max_age": 5})',
        "PluginUse(name=name, config={key: value for key, value in written.items()})",
    ],
)
def test_a_handmade_configuration_is_found(source: str) -> None:
    assert list(handmade(source)) == [1]


@pytest.mark.parametrize(
    "source",
    [
        "PluginUse.of(CorsConfig(max_age=5))",
        "PluginUse(name=plugin.name, config=config, secrets=secrets)",
        "PluginUse(name=name, fault=fault[1:])",
    ],
)
def test_a_typed_configuration_and_what_a_user_wrote_are_none(source: str) -> None:
    assert not list(handmade(source))


@pytest.mark.parametrize("module", MODULES, ids=lambda module: str(module.relative_to(_ROOT)))
def test_no_dialect_makes_a_configuration_by_hand(module: Path) -> None:
    assert not list(handmade(module.read_text()))


def test_the_dialects_are_looked_at() -> None:
    assert {module.parent.name for module in MODULES} >= {"apisix", "ingress", "services", "annotations"}
