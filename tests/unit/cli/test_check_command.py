"""`headgate check`: what it finds, how it says so, and its exit code."""

import json
from pathlib import Path

import pytest

from headgate.cli.__main__ import main

QUICKSTART = Path(__file__).parents[3] / "examples" / "quickstart"
INGRESS = """\
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: web}
spec:
  rules:
    - host: web.example
      http:
        paths:
          - {path: /, pathType: Prefix, backend: {service: {name: web, port: {name: %s}}}}
---
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {ports: [{name: http, port: 80}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: web-1, labels: {kubernetes.io/service-name: web}}
addressType: IPv4
ports: [{name: http, port: 9101}]
endpoints: [{addresses: [127.0.0.1]}]
"""


def write(folder: Path, text: str, name: str = "web.yaml") -> Path:
    path = folder / name
    path.write_text(text)
    return path


def test_good_manifests_are_exit_code_0(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", str(write(tmp_path, INGRESS % "http"))]) == 0
    assert capsys.readouterr().out == "3 objects in 1 file: 0 errors, 0 warnings\n"


def test_the_quickstart_is_without_errors_apart_from_the_secret_that_is_made_later(
    capsys: pytest.CaptureFixture[str],
) -> None:
    main(["check", str(QUICKSTART / "demo.yaml")])
    assert "0 errors" in capsys.readouterr().out


def test_an_error_names_file_line_object_field_and_reason(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path, "# a comment\n---\n" + INGRESS % "htp")
    assert main(["check", str(path)]) == 1
    line = capsys.readouterr().out.splitlines()[0]
    assert line.startswith(
        f"{path}:3: error: Ingress default/web: spec.rules[0].http.paths[0].backend.service.port.name:"
    )
    assert line.endswith("[PortNotFound]")


def test_a_malformed_file_is_an_error_and_the_other_files_are_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(tmp_path, INGRESS % "http")
    write(tmp_path, "a: [", "broken.yaml")
    assert main(["check", str(tmp_path)]) == 1
    shown = capsys.readouterr().out
    assert f"{tmp_path}/broken.yaml:" in shown
    assert "3 objects in 2 files: 1 error, 0 warnings" in shown


def test_json_has_one_finding_for_each_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path, INGRESS % "htp")
    assert main(["check", str(path), "--json"]) == 1
    document = json.loads(capsys.readouterr().out)
    assert document["errors"] == len(document["findings"]) == 1
    assert document["findings"][0]["file"] == str(path)
    assert document["findings"][0]["reason"] == "PortNotFound"


def test_an_adopted_controller_makes_its_ingresses_ours(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    theirs = (INGRESS % "htp").replace("spec:\n  rules", "spec:\n  ingressClassName: nginx\n  rules")
    classes = (
        "---\napiVersion: networking.k8s.io/v1\nkind: IngressClass\nmetadata: {name: nginx}\n"
        "spec: {controller: k8s.io/ingress-nginx}\n"
    )
    path = write(tmp_path, theirs + classes)
    assert main(["check", str(path)]) == 0
    assert main(["check", str(path), "--controller-names", "k8s.io/ingress-nginx"]) == 1
    assert "PortNotFound" in capsys.readouterr().out
