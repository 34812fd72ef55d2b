"""Manifest files as objects and problems."""

import base64
import json
import uuid
from pathlib import Path

import pytest

from headgate.common.deltas import MAX_DEPTH
from headgate.common.resources import ALL_KINDS, JsonObject, ResourceKind
from headgate.common.sealing import Sealer
from headgate.watcher.objects.preparing import encode, is_sealed, prepare
from headgate.watcher.sources.manifests.files import read_paths
from headgate.watcher.sources.manifests.objects import Versioner
from headgate.watcher.sources.manifests.reader import MAX_FILE_BYTES, FileProblem, ManifestRead, read_manifest

VERSIONER = Versioner("paris", b"k" * 32)
SERVICE = "apiVersion: v1\nkind: Service\nmetadata: {name: web}\n"


def read(text: str | bytes, versioner: Versioner = VERSIONER) -> ManifestRead:
    return read_manifest(text.encode() if isinstance(text, str) else text, "web.yaml", versioner)


def only_object(text: str, versioner: Versioner = VERSIONER) -> JsonObject:
    found = read(text, versioner)
    assert found.problems == ()
    (one,) = found.objects
    return one.object


def only_problem(text: str | bytes) -> FileProblem:
    (problem,) = read(text).problems
    return problem


def test_an_object_gets_what_an_api_server_would_give_it() -> None:
    metadata = only_object(SERVICE)["metadata"]
    assert metadata["namespace"] == "default"
    namespace = uuid.UUID("5c0c3a1e-6f0b-5d7e-9a55-6c9a7d8e4f21")
    assert metadata["uid"] == str(uuid.uuid5(namespace, "paris/services/default/web"))
    assert len(metadata["resourceVersion"]) == 20


def test_uid_depends_on_the_name_alone() -> None:
    first = only_object(SERVICE)["metadata"]
    changed = only_object(SERVICE + "spec: {type: ClusterIP}\n")["metadata"]
    elsewhere = only_object(SERVICE, Versioner("rome", b""))["metadata"]
    assert first["uid"] == changed["uid"] != elsewhere["uid"]
    assert first["resourceVersion"] != changed["resourceVersion"]


def test_version_does_not_depend_on_form_nor_on_what_is_stripped() -> None:
    written = "kind: Service\nmetadata:\n  managedFields: []\n  resourceVersion: '7'\n  name: web\napiVersion: v1\n"
    assert only_object(written) == only_object(SERVICE)


def test_creation_timestamp_stays_as_written_or_absent() -> None:
    assert "creationTimestamp" not in only_object(SERVICE)["metadata"]
    dated = SERVICE.replace("{name: web}", "{name: web, creationTimestamp: 2024-01-02T03:04:05Z}")
    assert only_object(dated)["metadata"]["creationTimestamp"] == "2024-01-02T03:04:05Z"


def test_a_cluster_scoped_object_has_no_namespace() -> None:
    text = "apiVersion: networking.k8s.io/v1\nkind: IngressClass\nmetadata: {name: x, namespace: y}\n"
    assert "namespace" not in only_object(text)["metadata"]


@pytest.mark.parametrize("version", ["networking.k8s.io/v1", "networking.k8s.io/v1beta1", "extensions/v1beta1"])
def test_ingresses_of_all_versions_are_read(version: str) -> None:
    found = only_object(f"apiVersion: {version}\nkind: Ingress\nmetadata: {{name: a.b}}\nstatus: {{x: 1}}\n")
    assert found["apiVersion"] == version
    assert "status" not in found


ALL_THAT_MAY_STAND_IN_ONE = """
  annotations: {kubectl.kubernetes.io/last-applied-configuration: x, gateway.networking.k8s.io/bundle-version: v1, z: a}
  labels: {b: c, a: b}
  managedFields: [{manager: kubectl}]
spec: {z: 1.50, a: [{y: 2, x: 1}], auth: {key: k}, provider: {controlPlane: {auth: {adminKey: {value: secret}}}}}
status: {z: 1, addresses: [{value: 192.0.2.1}], loadBalancer: {ingress: [{ip: 192.0.2.1}]}}
"""


@pytest.mark.parametrize("kind", [kind for kind in ALL_KINDS.readable if not is_sealed(kind)], ids=str)
def test_what_is_ready_is_what_a_publisher_makes_of_it(kind: ResourceKind) -> None:
    version = "/".join(filter(None, (kind.group, kind.versions[0])))
    name = kind.names[0] if kind.names else "x"
    text = f"apiVersion: {version}\nkind: {kind.kind}\nmetadata:\n  name: {name}{ALL_THAT_MAY_STAND_IN_ONE}"
    (one,) = read(text).objects
    assert one.is_ready
    prepared = prepare(kind, one.object, Sealer("paris", ()))
    assert one.content == encode(prepared)
    assert (one.uid, one.version) == (one.object["metadata"]["uid"], one.object["metadata"]["resourceVersion"])


def test_what_the_publisher_seals_or_refuses_is_not_ready() -> None:
    secret = "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\n"
    deep = SERVICE + f"spec: {'[' * (MAX_DEPTH - 1)}{']' * (MAX_DEPTH - 1)}\n"
    too_deep = SERVICE + f"spec: {'[' * MAX_DEPTH}{']' * MAX_DEPTH}\n"
    unnamed = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: a.example}\n"
    texts = (secret, deep, too_deep, unnamed)
    assert [one.is_ready for text in texts for one in read(text).objects] == [False, True, False, False]


def test_other_kinds_are_passed_over() -> None:
    assert read("apiVersion: apps/v1\nkind: Deployment\n") == ManifestRead()
    assert read("---\n---\n# nothing\n") == ManifestRead()


def test_lists_are_opened() -> None:
    item = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "a"}}
    nested = {"apiVersion": "v1", "kind": "List", "items": [item, {"kind": "List", "apiVersion": "v1", "items": None}]}
    typed = {"apiVersion": "v1", "kind": "ServiceList", "items": [{"metadata": {"name": "b"}}]}
    found = read(f"{json.dumps(nested)}\n{json.dumps(typed)}")
    assert [one.ref.name for one in found.objects] == ["a", "b"]
    assert found.problems == ()


def test_objects_know_their_lines() -> None:
    found = read(f"# first\n{SERVICE}---\nkind: List\napiVersion: v1\nitems:\n- kind: Namespace\n  apiVersion: v1\n"
                 "  metadata: {name: shop}\n")  # fmt: skip
    assert [(one.file, one.line) for one in found.objects] == [("web.yaml", 2), ("web.yaml", 9)]


@pytest.mark.parametrize(
    ("text", "reason", "field"),
    [
        ("kind: Service\nmetadata: {name: a}", "MissingField", "apiVersion"),
        ("apiVersion: v1\nmetadata: {name: a}", "MissingField", "kind"),
        ("apiVersion: v1\nkind: 5", "InvalidType", "kind"),
        ("apiVersion: v1\nkind: Service", "MissingField", "metadata.name"),
        ("apiVersion: v1\nkind: Service\nmetadata: {generateName: a-}", "MissingField", "metadata.name"),
        ("apiVersion: v1\nkind: Service\nmetadata: {name: Web}", "InvalidName", "metadata.name"),
        ("apiVersion: v1\nkind: Service\nmetadata: {name: a.b}", "InvalidName", "metadata.name"),
        ("apiVersion: v1\nkind: Secret\nmetadata: {name: a..b}", "InvalidName", "metadata.name"),
        (f"apiVersion: v1\nkind: Secret\nmetadata: {{name: {'a' * 254}}}", "InvalidName", "metadata.name"),
        ("apiVersion: v1\nkind: Service\nmetadata: {name: on}", "InvalidType", "metadata.name"),
        ("apiVersion: v1\nkind: Service\nmetadata: {name: 1.10}", "InvalidType", "metadata.name"),
        ("apiVersion: v1\nkind: Service\nmetadata: {name: a, namespace: no}", "InvalidType", "metadata.namespace"),
        ("apiVersion: v1\nkind: Service\nmetadata: {name: a, namespace: b.c}", "InvalidName", "metadata.namespace"),
        ("apiVersion: v1\nkind: Service\nmetadata: {name: a, labels: {x: 1}}", "InvalidType", "metadata.labels[x]"),
        ("apiVersion: v1\nkind: Service\nmetadata: {name: a, annotations: []}", "InvalidType", "metadata.annotations"),
        ("apiVersion: networking.k8s.io/v2\nkind: Ingress\nmetadata: {name: a}", "UnknownVersion", "apiVersion"),
        ("apiVersion: v1\nkind: Secret\nmetadata: {name: a}\ndata: {k: '%'}", "InvalidBase64", "data[k]"),
        ("apiVersion: v1\nkind: Secret\nmetadata: {name: a}\ndata: text", "InvalidType", "data"),
        ("apiVersion: v1\nkind: Secret\nmetadata: {name: a}\nstringData: {k: 5}", "InvalidType", "stringData[k]"),
        ("- a\n- b", "NotAnObject", ""),
    ],
)
def test_what_an_api_server_would_refuse_is_refused(text: str, reason: str, field: str) -> None:
    found = only_problem(f"# comment\n{text}\n")
    assert (found.problem.reason, found.problem.field, found.line) == (reason, field, 2)


def test_a_problem_names_file_line_object_and_field() -> None:
    found = only_problem(f"{SERVICE}---\napiVersion: v1\nkind: Service\nmetadata: {{name: web_1, namespace: shop}}\n")
    assert str(found).startswith("web.yaml:5: Service shop/web_1: metadata.name: must be a DNS label")
    assert found.problem.value == "web_1"


def test_an_object_that_the_bus_cannot_carry_is_refused_with_its_size() -> None:
    found = only_problem(f"{SERVICE}spec: {{x: {'y' * 1_100_000}}}\n")
    assert found.problem.reason == "TooLarge"
    assert "1100" in found.problem.message
    assert found.object == "Service web" or found.object == "Service default/web"


def test_more_annotations_than_an_api_server_takes_are_refused() -> None:
    text = f"apiVersion: v1\nkind: Service\nmetadata: {{name: a, annotations: {{x: {'y' * 300_000}}}}}\n"
    assert only_problem(text).problem.field == "metadata.annotations"


def test_a_file_that_is_too_large_is_refused() -> None:
    assert only_problem(b"#" * (MAX_FILE_BYTES + 1)).problem.reason == "TooLarge"


def test_bytes_that_are_no_utf8_are_refused_with_their_line() -> None:
    found = only_problem(b"a: 1\nb: \xff\n")
    assert (found.line, found.problem.reason) == (2, "NotUtf8")


def test_a_byte_order_mark_is_no_content() -> None:
    assert len(read(b"\xef\xbb\xbf" + SERVICE.encode()).objects) == 1


def test_half_a_character_in_json_is_refused() -> None:
    text = '{"apiVersion": "v1", "kind": "Service", "metadata": {"name": "a"}, "spec": {"x": "\\ud800"}}'
    assert only_problem(text).problem.reason == "InvalidText"


def test_the_same_object_twice_in_a_file_is_told() -> None:
    found = read(f"{SERVICE}---\n{SERVICE}")
    assert len(found.objects) == 1
    assert (found.problems[0].line, found.problems[0].problem.reason) == (5, "DuplicateObject")
    assert "line 1" in found.problems[0].problem.message


SECRET = "apiVersion: v1\nkind: Secret\nmetadata: {name: a}\n"


def test_string_data_is_merged_over_data() -> None:
    found = only_object(f"{SECRET}data: {{a: YQ==, b: Yg==}}\nstringData: {{b: new, c: text}}\n")
    assert "stringData" not in found
    assert {name: base64.b64decode(text).decode() for name, text in found["data"].items()} == {
        "a": "a",
        "b": "new",
        "c": "text",
    }
    assert found["type"] == "Opaque"


def test_a_secrets_version_betrays_nothing_without_the_key() -> None:
    text = f"{SECRET}stringData: {{password: hunter2}}\n"
    ours, theirs = only_object(text), only_object(text, Versioner("paris", b"another key"))
    assert ours["metadata"]["resourceVersion"] != theirs["metadata"]["resourceVersion"]
    assert ours["metadata"]["resourceVersion"] == only_object(text)["metadata"]["resourceVersion"]


@pytest.mark.parametrize(
    "text",
    [
        f"{SECRET}data: {{k: hunter2!}}",
        f"{SECRET}data: hunter2",
        f"{SECRET}stringData: {{k: [hunter2]}}",
        f"{SECRET}stringData: {{k: *hunter2 }}",
        f"{SECRET}stringData: {{k: !hunter2 }}",
        f"{SECRET}stringData:\n  k: hunter2\n hunter2",
        f"{SECRET}stringData: {{k: 'hunter2",
        "hunter2",
        '{"kind": "Secret", "data": {"k": "hunter2',
    ],
)
def test_problems_never_quote_a_secret(text: str) -> None:
    assert "hunter2" not in "".join(map(str, read(text).problems))
    assert read(text).problems


def test_paths_are_read_like_the_watcher_reads_them(tmp_path: Path) -> None:
    (tmp_path / "deep" / "er").mkdir(parents=True)
    (tmp_path / "deep" / "er" / "b.json").write_text(
        '{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "n"}}'
    )
    (tmp_path / "a.yml").write_text(SERVICE)
    (tmp_path / "c.yaml").write_text(f"{SERVICE}---\nkind: [\n")
    (tmp_path / "readme.md").write_text("kind: [")
    (tmp_path / ".hidden.yaml").write_text("kind: [")
    found = read_paths([tmp_path, tmp_path / "missing.yaml"])
    assert [(one.ref.resource, Path(one.file).name) for one in found.objects] == [
        ("services", "a.yml"),
        ("namespaces", "b.json"),
    ]
    assert [problem.problem.reason for problem in found.problems] == ["DuplicateObject", "InvalidSyntax", "Unreadable"]
    assert str(tmp_path / "a.yml") in str(found.problems[0])
    assert str(tmp_path / "c.yaml") in str(found.problems[0])
