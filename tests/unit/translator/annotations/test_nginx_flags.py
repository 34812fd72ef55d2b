"""Flags in workloads of ingress-nginx."""

from typing import Any

import pytest

from headgate.translator.annotations.nginx.flags import FLAGS, find_flags
from headgate.translator.manifests.verdicts import Verdict


def workload(*args: Any, command: Any = ("/nginx-ingress-controller",)) -> Any:
    container = {"command": list(command), "args": list(args)}
    return {"metadata": {"namespace": "edge"}, "spec": {"template": {"spec": {"containers": [container]}}}}


@pytest.mark.parametrize(
    ("args", "name", "value"),
    [
        (["--ingress-class=own"], "ingress-class", "own"),
        (["--ingress-class", "own"], "ingress-class", "own"),
        (["-watch-ingress-without-class"], "watch-ingress-without-class", "true"),
        (["--watch-ingress-without-class", "--v=2"], "watch-ingress-without-class", "true"),
        (["--publish-service=$(POD_NAMESPACE)/own"], "publish-service", "edge/own"),
    ],
)
def test_flags_are_read_in_every_form(args: list[str], name: str, value: str) -> None:
    first = next(find_flags(workload(*args)))
    assert (first.flag.name, first.value) == (name, value)
    assert first.field == "spec.template.spec.containers[0].args[0]"


def test_an_unknown_flag_is_ignored_and_said() -> None:
    (found,) = find_flags(workload("--lost=1"))
    assert (found.verdict, found.advice) == (Verdict.IGNORED, "this flag is not known here")


def test_a_flag_with_a_setting_is_advised_as_an_environment_variable() -> None:
    flag = next(one for one in FLAGS if one.setting and not one.note)
    (found,) = find_flags(workload(f"--{flag.name}=x"))
    assert found.advice == f"HEADGATE_{flag.setting.upper()}=x for the {flag.reader}"
    assert found.verdict is flag.verdict


def test_a_flag_without_a_setting_is_honoured_by_its_default_alone() -> None:
    flag = next(one for one in FLAGS if one.default and not one.setting and one.verdict is Verdict.HONOURED)
    said = [next(find_flags(workload(f"--{flag.name}={value}"))) for value in (flag.default, "another")]
    assert [one.verdict for one in said] == [Verdict.HONOURED, Verdict.IGNORED]


def test_other_workloads_are_not_looked_at() -> None:
    assert list(find_flags(workload("--ingress-class=own", command=["/other"]))) == []
