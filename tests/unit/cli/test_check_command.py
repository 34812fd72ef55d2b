"""`headgate check`: what it finds, how it says so, and its exit code."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography.x509 import DNSName

from fakes.gateway.tls import Authority
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


@pytest.mark.parametrize("flags", [[], ["--json"]])
def test_nothing_to_check_is_an_error_that_names_the_path(
    flags: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "notes.txt").write_text("not a manifest")
    assert main(["check", str(tmp_path), *flags]) == 1
    assert capsys.readouterr() == (
        "",
        f"headgate: {tmp_path}: no object of a kind that Headgate reads; are the paths right?\n",
    )


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
        f"{path}:11: error: Ingress default/web: spec.rules[0].http.paths[0].backend.service.port.name:"
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


def test_a_class_without_an_object_is_adopted_by_its_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path, (INGRESS % "http").replace("spec:\n  rules", "spec:\n  ingressClassName: apisix\n  rules"))
    asked = ["explain", "GET", "http://web.example/", "--manifests", str(path)]
    assert main(asked) == 1
    capsys.readouterr()
    main([*asked, "--class-names", "apisix"])
    assert "wins  web.example" in capsys.readouterr().out
    assert main(["check", str(path), "--class-names", "apisix"]) == 0
    assert "of other classes" not in capsys.readouterr().out


def test_classes_are_no_question_to_a_gateway(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "GET", "http://x/", "--class-names", "apisix"]) == 2
    assert "--class-names belongs to --manifests" in capsys.readouterr().err


def ingress_class(name: str, controller: str, *, is_default: bool = False) -> str:
    annotation = f"ingressclass.kubernetes.io/is-default-class: '{str(is_default).lower()}'"
    return (
        "---\napiVersion: networking.k8s.io/v1\nkind: IngressClass\n"
        f"metadata: {{name: {name}, annotations: {{{annotation}}}}}\nspec: {{controller: {controller}}}\n"
    )


@pytest.mark.parametrize(
    ("named", "classes", "told"),
    [
        (
            "",
            ingress_class("nginx", "k8s.io/ingress-nginx"),
            "no ingressClassName, and no IngressClass is the default;",
        ),
        (
            "",
            ingress_class("nginx", "k8s.io/ingress-nginx", is_default=True),
            "no ingressClassName, and the default class 'nginx' is of 'k8s.io/ingress-nginx'; set ingressClassName,",
        ),
        ("nginx", ingress_class("nginx", "k8s.io/ingress-nginx"), "its class 'nginx' is of the controller"),
        ("other", "", "there is no IngressClass 'other', and the class names that count as ours are: headgate"),
    ],
)
def test_an_ingress_of_another_class_is_named_with_the_reason(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], named: str, classes: str, told: str
) -> None:
    text = (INGRESS % "http").replace("spec:\n", f"spec:\n  ingressClassName: {named}\n" if named else "spec:\n", 1)
    path = write(tmp_path, text + classes)
    assert main(["check", str(path)]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith(f"{path}:1: info: Ingress default/web: not ours: {told}")
    assert shown.endswith("0 errors, 0 warnings, 1 object of other classes\n")
    assert main(["explain", "GET", "http://web.example/", "--manifests", str(path)]) == 1
    assert told in capsys.readouterr().out


def test_an_adopted_class_is_not_noted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path, INGRESS % "http" + ingress_class("nginx", "k8s.io/ingress-nginx", is_default=True))
    assert main(["check", str(path), "--controller-names", "k8s.io/ingress-nginx"]) == 0
    assert "not ours" not in capsys.readouterr().out


def test_annotations_of_ingresses_and_services_are_checked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ingress, service = "metadata: {name: web}\nspec:\n  rules", "metadata: {name: web}\nspec: {ports"
    annotated = "metadata: {name: web, annotations: {headgate.dev/%s}}\nspec"
    text = (INGRESS % "http").replace(ingress, annotated % "client-networks: everybody" + ":\n  rules")
    text = text.replace(service, annotated % "load-balanc: random" + ": {ports")
    assert main(["check", str(write(tmp_path, text))]) == 1
    first, second = capsys.readouterr().out.splitlines()[:2]
    assert "error: Ingress default/web: metadata.annotations[headgate.dev/client-networks]:" in first
    assert first.endswith("[InvalidAnnotation]")
    assert "warning: Service default/web: metadata.annotations[headgate.dev/load-balanc]:" in second
    assert "the nearest is headgate.dev/load-balance" in second


def test_resources_of_apisix_are_checked_as_everything_else(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    spec = "{http: [{name: a, match: {paths: [x]}, backends: [{serviceName: web, servicePort: 80}]}]}"
    head = "apiVersion: apisix.apache.org/v2\nkind: ApisixRoute\nmetadata: {name: web}\n"
    path = write(tmp_path, f"{head}spec: {spec}\n")
    assert main(["check", str(path)]) == 1
    assert "ApisixRoute default/web: spec.http[0].match.paths[0]: must start with '/'" in capsys.readouterr().out


def test_a_resource_of_apisix_of_another_class_is_named_with_the_reason(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    head = "apiVersion: apisix.apache.org/v2\nkind: ApisixRoute\nmetadata: {name: web}\n"
    path = write(tmp_path, f"{head}spec: {{ingressClassName: other}}\n")
    assert main(["check", str(path)]) == 0
    assert "ApisixRoute default/web: not ours: there is no IngressClass 'other'" in capsys.readouterr().out


PLUGIN_CONFIG = """\
apiVersion: apisix.apache.org/v1alpha1
kind: PluginConfig
metadata: {name: shared}
spec: {plugins: [{name: cors, config: {max_age: %s}}]}
"""


def test_a_note_is_no_warning(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", str(write(tmp_path, PLUGIN_CONFIG % 5))]) == 0
    assert capsys.readouterr().out.endswith("1 object in 1 file: 0 errors, 0 warnings\n")


def test_a_wrong_plugin_of_a_plugin_config_names_what_is_allowed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["check", str(write(tmp_path, PLUGIN_CONFIG % "x"))]) == 1
    assert "plugin cors: must be a whole number, but is a text [InvalidPlugin]" in capsys.readouterr().out


ROUTE = """\
apiVersion: apisix.apache.org/v2
kind: ApisixRoute
metadata: {name: lua}
spec:
  ingressClassName: headgate
  http:
    - name: all
      match: {hosts: [lua.example], paths: [/*]}
      backends: [{serviceName: web, servicePort: 80}]
      plugins: [{name: serverless-pre-function, enable: true}]
"""


def test_a_plugin_that_is_ignored_is_counted_as_one_that_lets_requests_in(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path, f"{INGRESS % 'http'}---\n{ROUTE}")
    assert main(["check", str(path)]) == 1
    assert "HEADGATE_IGNORED_PLUGINS" in capsys.readouterr().out
    monkeypatch.setenv("HEADGATE_IGNORED_PLUGINS", '["serverless-pre-function"]')
    assert main(["check", str(path)]) == 0
    assert capsys.readouterr().out.endswith("1 ignored plugin that may keep requests out\n")
    assert main(["check", "--json", str(path)]) == 0
    assert json.loads(capsys.readouterr().out)["lets_in"] == 1


@pytest.mark.parametrize(
    ("days", "code", "told"), [(-1, 1, "[CertificateEnded]"), (3, 0, "[CertificateEnds]"), (60, 0, "")]
)
def test_a_certificate_that_ends_is_found_in_its_secret(
    days: int, code: int, told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    issued = Authority().issue("web.example", DNSName("web.example"), ends=datetime.now(UTC) + timedelta(days=days))
    values = {"tls.crt": issued.chain_pem.decode(), "tls.key": issued.key_pem.decode()}
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "tls"},
        "type": "kubernetes.io/tls",
        "stringData": values,
    }
    write(tmp_path, json.dumps(secret), "secret.json")
    with_tls = INGRESS.replace("spec:", "spec:\n  tls: [{hosts: [web.example], secretName: tls}]", 1)
    assert main(["check", str(tmp_path), str(write(tmp_path, with_tls % "http"))]) == code
    lines = [line for line in capsys.readouterr().out.splitlines() if "Secret default/tls" in line]
    assert [line.rpartition(" ")[2] for line in lines] == ([told] if told else [])


def test_the_line_of_a_field_is_named_and_corrected_where_something_is_near(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = write(tmp_path, "# a comment\n" + INGRESS.replace("Prefix", "Prefx") % "http")
    main(["check", str(file)])
    out = capsys.readouterr().out
    (number,) = [number for number, line in enumerate(file.read_text().splitlines(), 1) if "Prefx" in line]
    assert f"{file}:{number}: error: Ingress default/web: spec.rules[0].http.paths[0].pathType" in out
    was, now = [line for line in out.splitlines() if line.startswith(("  - ", "  + "))]
    assert now == was.replace("Prefx", "Prefix").replace("  - ", "  + ", 1)
    main(["check", str(file), "--json"])
    (found,) = [one for one in json.loads(capsys.readouterr().out)["findings"] if "corrected" in one]
    assert (found["field_line"], found["corrected"].strip()) == (number, now[4:].strip())


def test_lines_of_secrets_are_not_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "secret.yaml"
    file.write_text(
        "apiVersion: v1\nkind: Secret\nmetadata: {name: a}\nstringDta: {password: very-secret}\ntype: Opaqe\n"
    )
    main(["check", str(file)])
    assert "very-secret" not in "".join(capsys.readouterr())
