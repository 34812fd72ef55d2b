"""`headgate check`, `audit` and `explain` on Traefik's resources."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from fakes.translator.deltas import endpoint_slice, service
from fakes.translator.traefik import WEB, middleware, resource, route, rule
from headgate.cli.__main__ import main
from headgate.cli.offline.auditing import audit_paths


def folder(tmp_path: Path, *manifests: Any) -> str:
    present = (service(), endpoint_slice("web", "127.0.0.1"))
    (tmp_path / "all.yaml").write_text(yaml.safe_dump_all((*present, *manifests)))
    return str(tmp_path)


def test_check_is_content_with_what_is_served(tmp_path: Path) -> None:
    strip = middleware("strip", stripPrefix={"prefixes": ["/a"]})
    served = route(rule("Host(`a.test`) && PathPrefix(`/a`)", middlewares=["strip"]))
    assert main(["check", folder(tmp_path, strip, served)]) == 0


def test_check_names_a_mistake_in_a_rule_with_its_column(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", folder(tmp_path, route(rule("Host(`a.test`) && Prefix(`/`)")))]) == 1
    shown = capsys.readouterr().out
    assert "spec.routes[0].match" in shown
    assert "column 19" in shown


def test_check_names_a_middleware_that_is_missing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", folder(tmp_path, route(rule("Host(`a.test`)", middlewares=["lost"])))]) == 1
    assert "Middleware default/lost not found" in capsys.readouterr().out


def test_audit_says_what_becomes_of_each_field(tmp_path: Path) -> None:
    moved = route(rule("Host(`a.test`)", {**WEB, "strategy": "p2c", "nodePortLB": True, "serversTransport": "own"}))
    option = resource("ServersTransport", "own", {"serverName": "a.test"})
    report = audit_paths([Path(folder(tmp_path, moved, option))])
    said = {one.name: one.verdict.value for audited in report.found for one in audited.said}
    assert said["routes[].services[].strategy"] == "approximated"
    assert said["routes[].services[].nodePortLB"] == "ignored"
    assert said["routes[].services[].serversTransport"] == "honoured"
    assert said["serverName"] == "honoured"


def test_explain_names_the_route_that_wins_and_why_another_lost(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    short, long = "Host(`a.test`) && PathPrefix(`/a`)", "Host(`a.test`) && PathPrefix(`/a`) && Method(`GET`)"
    path = folder(tmp_path, route(rule(short), name="short"), route(rule(long), name="long"))
    assert main(["explain", "GET", "http://a.test/a/b", "--manifests", path, "--json"]) == 0
    winner, loser = json.loads(capsys.readouterr().out)["candidates"]
    assert (winner["wins"], loser["wins"]) == (True, False)
    assert "default/long" in json.dumps(winner)
    assert "priority" in json.dumps(loser)
