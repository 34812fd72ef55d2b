"""What Traefik is given to be measured beside Headgate."""

import json
from pathlib import Path

import yaml
from bench.reporting.figures import Distribution
from bench.setup.traefik import ingress_route
from bench.traefik import ChangingFile, Figures, Plan, dynamic_configuration, markdown


def test_both_have_the_same_rule() -> None:
    theirs = json.loads(dynamic_configuration([("one", "one.test", 8000)]))["http"]
    ours = yaml.safe_load(ingress_route("one", "one.test", "one"))["spec"]["routes"][0]
    assert theirs["routers"]["one"]["rule"] == ours["match"]
    assert theirs["services"]["one"]["loadBalancer"]["servers"] == [{"url": "http://127.0.0.1:8000"}]


def test_a_changed_file_names_the_next_server(tmp_path: Path) -> None:
    site = ChangingFile(tmp_path, [8000, 8001])
    (file,) = tmp_path.iterdir()
    for port in ("8000", "8001", "8000"):
        assert site.answer == port
        assert f"127.0.0.1:{port}" in file.read_text()
        site.move_endpoint()


def test_a_table_says_what_many_routes_cost() -> None:
    plan = Plan(routes=5000, few=10, changes=100, rounds=3, seconds=3.0, connections=32, pause_s=2.1)
    text = markdown(plan, [Figures("Headgate", 4.04, 40.0, 42.0, 44.0, Distribution.of([10.0, 20.0]))])
    assert [cell.strip() for cell in text.splitlines()[2].split("|")[1:-1]] == [
        "Headgate",
        "4.0 s",
        "40 µs",
        "42 µs",
        "1.05",
        "44 µs",
        "1.10",
        "10 ms",
        "20 ms",
    ]
