"""Plugins of the group headgate.dev: what is checked of them, and what they tell."""

from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
import yaml

from fakes.translator.deltas import applied, ref_of
from headgate.common.problems import Problem
from headgate.translator.offline import translate_all

LIMIT = {"name": "limit-count", "config": {"count": 1, "time_window": 60}}
DEFINITION = Path(__file__).parents[5] / "crds" / "headgate.dev_plugins.yaml"


def plugin(*plugins: Any, **spec: Any) -> Any:
    return {
        "apiVersion": "headgate.dev/v1",
        "kind": "Plugin",
        "metadata": {"name": "limits", "namespace": "default", "uid": "uid-limits"},
        "spec": {"plugins": list(plugins), **spec},
    }


def problems(*plugins: Any, **spec: Any) -> list[Problem]:
    written = plugin(*plugins, **spec)
    offline = translate_all([applied(written)])
    return list(offline.problems.get(ref_of(written), ()))


def test_one_with_nothing_wrong_tells_nothing() -> None:
    assert problems(LIMIT) == []


@pytest.mark.parametrize(
    ("written", "field", "told"),
    [
        ({"name": "limit-count", "config": {"count": -1, "time_window": 1}}, "config.count", "limit-count"),
        ({"name": "limit-cuont"}, "name", "the nearest is limit-count"),
        ({"config": {}}, "name", "must be given"),
        ({"name": "limit-count", "secretRef": "users"}, "secretRef", "must be an object"),
        ({"name": "key-auth", "secretRef": {"name": "users"}}, "secretRef", "Secret default/users is not there"),
        ({"name": "traffic-split"}, "name", "backendRefs"),
        ({"name": "proxy-mirror", "config": {"upstream": "a/b"}}, "config.upstream", "RequestMirror"),
    ],
)
def test_a_plugin_that_cannot_be_followed_is_named(written: Any, field: str, told: str) -> None:
    (problem,) = problems({"name": "cors"}, written)
    assert (problem.severity, problem.field) == ("error", f"spec.plugins[1].{field}")
    assert told in problem.message


def test_a_name_that_is_there_twice_is_refused_at_both_places() -> None:
    found = problems(LIMIT, LIMIT)
    assert [problem.field for problem in found] == ["spec.plugins[0].name", "spec.plugins[1].name"]


def test_one_without_plugins_is_refused() -> None:
    assert [problem.reason for problem in problems()] == ["Required"]


def test_one_with_more_plugins_than_are_served_is_refused() -> None:
    many = ({"name": f"plugin-{number}"} for number in range(33))
    assert "TooMuchWork" in {problem.reason for problem in problems(*many)}


def test_a_field_that_does_not_exist_is_named() -> None:
    assert [problem.field for problem in problems(LIMIT, plugin=1)] == ["spec.plugin"]


def test_the_definition_takes_an_object_and_no_plugin_without_a_name() -> None:
    (version,) = yaml.safe_load(DEFINITION.read_text())["spec"]["versions"]
    schema = jsonschema_rs.validator_for(version["schema"]["openAPIV3Schema"])
    assert schema.is_valid(plugin({**LIMIT, "secretRef": {"name": "counts"}}))
    assert not schema.is_valid(plugin({"config": {}}))
