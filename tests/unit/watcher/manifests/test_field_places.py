"""Where fields stand in the text of a file."""

import pytest

from headgate.watcher.sources.manifests import field_places
from headgate.watcher.sources.manifests.field_places import FieldPlace, Span, find_field

TEXT = """\
kind: Other
---
apiVersion: v1   # line 3
metadata:
  annotations:
    a.example/b.c: "one"
    ? [odd, key]
    : odd
    d: &anchor 'two'
    e: *anchor
spec:
  rules:
  - host: a.example
    paths: [{path: /x}, {path: /y, backend: {port: 80}}]
  - host: |
      long
  tls.crt: here
---
kind: Last
"""
LIST = """\
kind: List
items:
  - kind: Ingress
    spec: {host: a}
  - kind: Ingress
    spec:
      host: b
"""


def piece(text: str, span: Span | None) -> str | None:
    return text.splitlines()[span.line - 1][span.begin : span.end] if span is not None else None


@pytest.mark.parametrize(
    ("field", "line", "name", "value"),
    [
        ("spec.rules[0].host", 13, "host", "a.example"),
        ("spec.rules[0].paths[1].path", 14, "path", "/y"),
        ("spec.rules[0].paths[1].backend.port", 14, "port", "80"),
        ("spec.rules[1].host", 15, "host", None),
        ("metadata.annotations[a.example/b.c]", 6, "a.example/b.c", "one"),
        ("metadata.annotations.d", 9, "d", None),
        ("metadata.annotations.e", 10, "e", None),
        ("spec.tls.crt", 17, "tls.crt", "here"),
        ("spec.rules[1]", 15, None, None),
        ("spec", 11, "spec", None),
    ],
)
def test_a_field_is_found_with_its_name_and_value(field: str, line: int, name: str | None, value: str | None) -> None:
    found = find_field(TEXT, 3, field)
    assert (found.line, found.is_exact) == (line, True)
    assert (piece(TEXT, found.name), piece(TEXT, found.value)) == (name, value)


@pytest.mark.parametrize(
    ("field", "line"),
    [
        ("spec.rules[0].nothing", 13),
        ("spec.rules[7].host", 12),
        ("spec.nothing.more", 11),
        ("nothing", 3),
        ("", 3),
        ("spec.rules[0].host.more", 13),
        ("spec.rules.host", 12),
    ],
)
def test_of_a_field_that_is_not_there_the_nearest_above_it_is_named(field: str, line: int) -> None:
    assert find_field(TEXT, 3, field).line == line


def test_items_of_a_list_are_objects() -> None:
    assert find_field(LIST, 3, "spec.host").line == 4
    assert find_field(LIST, 5, "spec.host").line == 7
    assert find_field('{"kind": "A", "spec": {"host": "b"}}', 1, "spec.host").value == Span(1, 32, 33)


@pytest.mark.parametrize("text", ["", "a: [", "a: *nothing", "- - -", "\x00", "spec: {a: 1}\nspec: [", "--- {a: 1}"])
def test_what_cannot_be_read_has_the_line_of_its_object(text: str) -> None:
    assert find_field(text, 1, "spec.b") in (FieldPlace(1, is_exact=False), FieldPlace(1, False, Span(1, 0, 4)))


def test_of_many_objects_one_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    pieces: list[str] = []
    read = field_places.DocumentText.read

    def note(document: field_places.DocumentText, *size: int) -> str:
        pieces.append(read(document, *size))
        return pieces[-1]

    monkeypatch.setattr(field_places.DocumentText, "read", note)
    text = LIST + "  - kind: Ingress\n    spec: {host: c}\n" * 1000
    assert find_field(text, 5, "spec.host").line == 7
    assert len(pieces) < 10
