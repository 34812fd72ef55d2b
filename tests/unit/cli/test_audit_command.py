"""`headgate audit`: its summary, its exit code and its JSON."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from headgate.cli.__main__ import main
from headgate.gateway.settings import GatewaySettings
from headgate.translator.annotations.nginx.flags import FLAGS
from headgate.translator.settings import TranslatorSettings
from headgate.watcher.settings import WatcherSettings

INGRESS = """\
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: web-%d, annotations: {%s}}
spec: {ingressClassName: nginx, rules: [{host: a.com}]}
"""
GUARDED = """\
apiVersion: apisix.apache.org/v2
kind: ApisixRoute
metadata: {name: waf}
spec:
  http:
    - name: all
      match: {hosts: [a.com], paths: [/*]}
      backends: [{serviceName: web, servicePort: 80}]
      plugins: [{name: a-waf, enable: true}]
"""
BUFFERED = 'nginx.ingress.kubernetes.io/proxy-buffer-size: "8k"'
SIZED = 'headgate.dev/max-body: "8m"'
WRONG = 'headgate.dev/client-networks: "nonsense"'


def write(folder: Path, *annotations: str) -> Path:
    """Write an Ingress for each annotation, or `GUARDED` as it is."""
    path = folder / "web.yaml"
    path.write_text(
        "---\n".join(one if one == GUARDED else INGRESS % (number, one) for number, one in enumerate(annotations))
    )
    return path


@pytest.fixture(autouse=True)
def _a_guard_is_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADGATE_IGNORED_PLUGINS", '["a-waf"]')


def test_objects_are_counted_by_annotation_and_verdict(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["audit", str(write(tmp_path, GUARDED, SIZED, SIZED))])
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["ignored", "!", "1", "http[].plugins[a-waf]"] in [line[:4] for line in lines]
    assert ["honoured", "2", "headgate.dev/max-body"] in lines


def test_objects_of_any_class_are_audited(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["audit", str(write(tmp_path, SIZED))])
    assert "1 object: 1 honoured, 0 approximated, 0 ignored, 0 refused" in capsys.readouterr().out


def test_restrictions_that_would_be_lost_are_counted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["audit", str(write(tmp_path, GUARDED, SIZED))])
    assert capsys.readouterr().out.splitlines()[-1] == "! 1 object would let in requests that are kept out now"


def test_restrictions_that_would_be_lost_are_exit_code_1_unless_that_is_allowed(tmp_path: Path) -> None:
    path = write(tmp_path, GUARDED, SIZED)
    assert main(["audit", str(path)]) == 1
    assert main(["audit", "--json", str(path)]) == 1
    assert main(["audit", "--allow-ignored-guards", str(path)]) == 0


def test_what_is_refused_is_not_allowed_with_ignored_restrictions(tmp_path: Path) -> None:
    assert main(["audit", "--allow-ignored-guards", str(write(tmp_path, GUARDED, WRONG))]) == 1


@pytest.mark.parametrize(
    ("arguments", "remedy"),
    [
        ([], "give files or folders of manifests, --kubeconfig FILE or --live"),
        (["{path}", "--live"], "one audit has one source"),
        (["{path}", "--namespace", "shop"], "of files give those that are wanted"),
    ],
)
def test_an_audit_has_one_source(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], remedy: str
) -> None:
    path = str(write(tmp_path, SIZED))
    assert main(["audit", *(argument.format(path=path) for argument in arguments)]) == 2
    assert remedy in capsys.readouterr().err


def test_anything_refused_is_exit_code_1(tmp_path: Path) -> None:
    assert main(["audit", str(write(tmp_path, SIZED, WRONG))]) == 1


def test_a_file_that_cannot_be_read_is_exit_code_1(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "broken.yaml").write_text("a: [")
    assert main(["audit", str(tmp_path)]) == 1
    assert "broken.yaml:" in capsys.readouterr().out


def test_objects_are_shown_with_file_and_line_and_what_is_not_honoured(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write(tmp_path, SIZED, f"{BUFFERED}, {SIZED}")
    main(["audit", "--objects", str(path)])
    shown = capsys.readouterr().out
    before_summary = shown.partition("\n\n")[0].splitlines()
    assert before_summary[0] == f"{path}:6: Ingress default/web-1"
    assert len(before_summary) == 3


def test_all_shows_what_is_honoured_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path, SIZED)
    main(["audit", "--objects", "--all", str(path)])
    assert capsys.readouterr().out.startswith(f"{path}:1: Ingress default/web-0\n")


def test_json_has_the_summary_and_every_object(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["audit", "--json", str(write(tmp_path, GUARDED, SIZED))])
    document = json.loads(capsys.readouterr().out)
    assert document["verdicts"] == {"honoured": 5, "approximated": 0, "ignored": 1, "refused": 0}
    assert (document["objects"], document["lets_in"]) == (2, 1)
    assert [line["objects"] for line in document["summary"]] == [1] * 6
    assert document["audited"][0]["said"][0]["verdict"] == "ignored"


def test_objects_of_apache_apisix_that_are_not_read_are_ignored(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = "apiVersion: apisix.apache.org/v1alpha1\nkind: Unheard\nmetadata: {name: web}\n"
    (tmp_path / "web.yaml").write_text(text)
    assert main(["audit", str(tmp_path)]) == 0
    shown = [line.split()[:4] for line in capsys.readouterr().out.splitlines()]
    assert ["ignored", "1", "kind", "Unheard"] in shown


def test_services_that_say_nothing_of_routing_are_not_counted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "web.yaml").write_text(
        "apiVersion: v1\nkind: Service\nmetadata: {name: web}\nspec: {ports: [{port: 80}]}\n"
    )
    assert main(["audit", str(tmp_path)]) == 0
    assert capsys.readouterr().out.startswith("0 objects: ")


def test_the_page_has_each_object_and_nothing_from_elsewhere(tmp_path: Path) -> None:
    page, evil = tmp_path / "audit.html", 'headgate.dev/<b>"x\'&amp: "1"'
    main(["audit", "--html", str(page), str(write(tmp_path, GUARDED, SIZED, WRONG, evil))])
    text = page.read_text()
    assert "1 object would let in requests" in text
    assert text.count("<tr>") == 2 + len(re.findall(r"<tr><td data-key", text))
    assert "Ingress default/web-1" in text
    assert "headgate.dev/max-body" in text
    assert "<b>" not in text
    assert not re.search(r"(src|href)=|url\(|@import|fetch\(", text)


CONTROLLER = """\
apiVersion: apps/v1
kind: {kind}
metadata: {{name: controller, namespace: ingress-nginx}}
spec:
  template:
    spec:
      containers:
        - {{name: sidecar, args: [--default-ssl-certificate=not/this]}}
        - name: controller
          command: [/nginx-ingress-controller]
          args: [{args}]
"""


def flags(folder: Path, capsys: pytest.CaptureFixture[str], *args: str, kind: str = "Deployment") -> dict[str, Any]:
    """Return what becomes of the flags of a controller, by name."""
    (folder / "controller.yaml").write_text(CONTROLLER.format(kind=kind, args=", ".join(map(json.dumps, args))))
    main(["audit", str(folder), "--json"])
    found = json.loads(capsys.readouterr().out)["audited"]
    return {said["name"]: said for one in found for said in one["said"]}


@pytest.mark.parametrize("kind", ["Deployment", "DaemonSet"])
def test_flags_of_a_controller_come_out_as_settings(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], kind: str
) -> None:
    said = flags(
        tmp_path,
        capsys,
        "--default-ssl-certificate=default/wild",
        "--configmap=$(POD_NAMESPACE)/options",
        "--disable-catch-all",
        "--annotations-prefix=team.example",
        "--watch-namespace",
        "shop",
        "--election-id=a",
        kind=kind,
    )
    assert "HEADGATE_NGINX_DEFAULT_SSL_CERTIFICATE=default/wild" in said["--default-ssl-certificate"]["note"]
    assert "HEADGATE_NGINX_CONFIGMAP=ingress-nginx/options" in said["--configmap"]["note"]
    assert "HEADGATE_NGINX_DISABLE_CATCH_ALL=true" in said["--disable-catch-all"]["note"]
    prefix = "HEADGATE_NGINX_ANNOTATIONS_PREFIX=team.example for the translator; and for the watchers"
    assert said["--annotations-prefix"]["note"] == prefix
    assert "HEADGATE_NAMESPACES=shop" in said["--watch-namespace"]["note"]
    assert said["--election-id"]["verdict"] == "ignored"
    assert said["--default-ssl-certificate"]["field"] == "spec.template.spec.containers[1].args[0]"


def test_a_flag_without_a_setting_is_ignored_unless_it_says_the_default(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for value, verdict in (("true", "honoured"), ("false", "ignored")):
        assert flags(tmp_path, capsys, f"--deep-inspect={value}")["--deep-inspect"]["verdict"] == verdict
    assert flags(tmp_path, capsys, "--no-such=1")["--no-such"]["verdict"] == "ignored"


def test_other_workloads_are_not_looked_at(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "web.yaml").write_text(CONTROLLER.format(kind="Deployment", args="").replace("/nginx-ingress", "/web"))
    assert main(["audit", str(tmp_path), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["audited"] == []


def test_settings_that_flags_stand_for_exist() -> None:
    known = {*TranslatorSettings.model_fields, *GatewaySettings.model_fields, *WatcherSettings.model_fields}
    assert {flag.setting for flag in FLAGS if flag.setting} <= known
