"""PluginConfigs of v1alpha1: what is checked of them."""

from typing import Any

import pytest

from fakes.translator.apisix import Translated, resource

LIMIT = {"name": "limit-count", "config": {"count": 1, "time_window": 60}}


def translated(*plugins: Any, **spec: Any) -> Translated:
    return Translated(resource("PluginConfig", "shared", {"plugins": list(plugins), **spec}, "v1alpha1"))


def test_one_with_nothing_wrong_is_accepted_and_tells_nothing() -> None:
    table = translated(LIMIT)
    assert table.problems("shared") == []
    assert table.is_accepted("shared")


@pytest.mark.parametrize(
    ("plugin", "severity", "field", "told"),
    [
        ({"name": "limit-count", "config": {"count": -1, "time_window": 1}}, "error", "config.count", "limit-count"),
        ({"name": "limit-count", "config": {"cuont": 1}}, "error", "config.cuont", "the nearest is count"),
        ({"name": "limit-cuont"}, "error", "name", "the nearest is limit-count"),
        ({"config": {}}, "error", "name", "must be given"),
    ],
)
def test_a_plugin_that_cannot_be_followed_is_named(plugin: Any, severity: str, field: str, told: str) -> None:
    problem = translated(LIMIT, plugin).problems("shared")[0]
    assert (problem.severity, problem.field) == (severity, f"spec.plugins[1].{field}")
    assert told in problem.message


def test_one_without_plugins_is_refused() -> None:
    assert translated().errors("shared") == ["spec.plugins"]
