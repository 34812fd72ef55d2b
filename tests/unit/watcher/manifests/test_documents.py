"""YAML and JSON as plain values, as kubectl would read them."""

import math

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from headgate.watcher.sources.manifests.documents import MAX_DEPTH, read_documents


def values(text: str) -> list[object]:
    documents, bad = read_documents(text)
    assert bad == []
    return [document.value for document in documents]


def one(text: str) -> object:
    (value,) = values(text)
    return value


def refusal(text: str) -> tuple[int, str, str]:
    _, (bad,) = read_documents(text)
    return bad.line, bad.reason, bad.message


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("on", True),
        ("y", True),
        ("No", False),
        ("~", None),
        ("", None),
        ("1.10", 1.1),
        ("1.0", 1),
        ("010", 8),
        ("08", 8),
        ("0x1f", 31),
        ("0b11", 3),
        ("0o17", 15),
        ("-7", -7),
        ("1_000", 1000),
        ("1e3", 1000),
        ("12e999", "12e999"),
        ("9" * 400, "9" * 400),
        ("18446744073709551615", 2**64 - 1),
        ("18446744073709551616", 2.0**64),
        ("1:30", "1:30"),
        ("1.2.3", "1.2.3"),
        ("2001-12-14", "2001-12-14"),
        ("2001-12-14T21:59:43Z", "2001-12-14T21:59:43Z"),
        ("'on'", "on"),
        ('"1.10"', "1.10"),
        ("!!str 12", "12"),
        ("! 12", "12"),
        ("!!int 12", 12),
        ("!!timestamp 2001-12-14", "2001-12-14"),
        ("+", "+"),
        ("-.", "-."),
    ],
)
def test_scalars_are_read_as_kubectl_reads_them(text: str, value: object) -> None:
    read = one(f"a: {text}")
    assert read == {"a": value}
    assert type(read["a"]) is type(value)  # type: ignore[index]


@pytest.mark.parametrize(("key", "name"), [("1", "1"), ("on", "true"), ("no", "false"), ("1.5", "1.5"), ("'~'", "~")])
def test_keys_become_text(key: str, name: str) -> None:
    assert one(f"{key}: x") == {name: "x"}


@pytest.mark.parametrize("key", ["~", "? [a]\n", "? {a: b}\n"])
def test_a_key_that_is_no_text_is_refused(key: str) -> None:
    assert "a key must be text" in refusal(f"{key}: x")[2]


@pytest.mark.parametrize("text", [".nan", ".inf", "-.Inf", "!!float .nan"])
def test_numbers_that_json_cannot_say_are_refused(text: str) -> None:
    assert refusal(f"a: 1\nb: {text}")[:2] == (2, "InvalidNumber")


@pytest.mark.parametrize("text", ["!!binary aGk=", "!mine x", "!!set {a}", "!!omap [a: b]", "!mine [a]"])
def test_tags_that_json_cannot_say_are_refused(text: str) -> None:
    assert refusal(f"a: {text}")[:2] == (1, "InvalidTag")


def test_a_tag_of_ones_own_is_not_shown_as_it_may_be_a_secret_without_quotes() -> None:
    assert "hunter2" not in refusal("password: !hunter2 x")[2]
    assert "hunter2" not in refusal("password: *hunter2")[2]


def test_a_key_twice_in_one_mapping_is_refused_with_its_line() -> None:
    assert refusal("a: 1\nb: 2\na: 3\n")[:2] == (3, "DuplicateKey")


def test_merge_keys_fill_in_what_is_absent() -> None:
    text = "x: &x {a: 1, b: 2}\ny: &y {c: 3, a: 9}\nz:\n  <<: [*x, *y]\n  b: 5\nw: {<<: *x}\n"
    read = one(text)
    assert isinstance(read, dict)
    assert read["z"] == {"a": 1, "b": 5, "c": 3}
    assert read["w"] == {"a": 1, "b": 2}


def test_merging_what_is_no_mapping_is_refused() -> None:
    assert refusal("a:\n  <<: 5\n")[0] == 2


def test_aliases_stand_for_their_anchors() -> None:
    assert one("a: &x [1, 2]\nb: *x\n? &k key\n: *k\n") == {"a": [1, 2], "b": [1, 2], "key": "key"}


def test_an_alias_without_an_anchor_is_refused() -> None:
    assert refusal("a: 1\nb: *x\n")[0] == 2


def test_an_anchor_ends_with_its_document() -> None:
    _, bad = read_documents("a: &x 1\n---\nb: *x\n")
    assert [one.line for one in bad] == [3]


def test_an_alias_within_its_own_anchor_is_refused() -> None:
    assert "anchor" in refusal("a: &x [*x]\n")[2]


def test_aliases_that_multiply_are_refused() -> None:
    levels = "\n".join(f"l{n}: &l{n} [{', '.join([f'*l{n - 1}'] * 9)}]" for n in range(1, 10))
    assert refusal(f"l0: &l0 [lol]\n{levels}\n")[1] == "TooLarge"


@pytest.mark.parametrize("text", ["[" * 200_000, "- " * 200_000, "{a: " * 100_000, '{"a":' * 100_000])
def test_deep_nesting_is_refused_and_harms_nobody(text: str) -> None:
    _, bad = read_documents(text)
    assert bad


def test_nesting_up_to_the_limit_is_read() -> None:
    assert values("[" * MAX_DEPTH + "]" * MAX_DEPTH)
    assert read_documents('{"a":' + "[" * (MAX_DEPTH + 5) + "]" * (MAX_DEPTH + 5) + "}")[1]


def test_documents_have_their_lines() -> None:
    documents, _ = read_documents("# one\na: 1\n---\n\nb: 2\n--- # three\nc: 3\n...\n")
    assert [document.line for document in documents] == [2, 5, 7]


def test_items_of_a_list_have_their_lines() -> None:
    (document,), _ = read_documents("kind: List\nitems:\n- a: 1\n  b: 2\n- a: 2\n")
    assert [document.lines[id(item)] for item in document.value["items"]] == [3, 5]


def test_one_bad_document_hides_no_other() -> None:
    documents, bad = read_documents("a: 1\n---\nb: [\n---\nc: 3\n---\nd: 1\nd: 2\n")
    assert [document.value for document in documents] == [{"a": 1}, {"c": 3}]
    assert [document.line for document in documents] == [1, 5]
    assert [one.line for one in bad] == [4, 8]


def test_a_broken_document_is_named_as_far_as_its_text_shows() -> None:
    text = "kind: Ingress\nmetadata:\n  labels: {a: b}\n  name: web\n  namespace: 'shop'\nspec: [\n---\nx: [\n"
    _, bad = read_documents(text)
    assert [one.object for one in bad] == ["Ingress shop/web", "document"]


def test_a_tab_is_told_with_its_line() -> None:
    line, reason, message = refusal("a:\n\tb: 1\n")
    assert (line, reason) == (2, "InvalidSyntax")
    assert "not YAML" in message


def test_control_characters_are_refused() -> None:
    assert refusal("a: \x01\n")[1] == "InvalidSyntax"


def test_json_is_read_with_tabs_and_one_after_another() -> None:
    assert values('{\n\t"a": 1.0\n}\n{"b": [true, null]}\n') == [{"a": 1}, {"b": [True, None]}]


@pytest.mark.parametrize("text", ['{"a": NaN}', '{"a": 1e999}', '{"a": 1, "a": 2}', '{"a": '])
def test_bad_json_is_refused(text: str) -> None:
    assert read_documents(text)[1]


def test_a_flow_mapping_of_yaml_is_no_bad_json() -> None:
    assert values("{a: b, c: [d]}\n---\ne: 1\n") == [{"a": "b", "c": ["d"]}, {"e": 1}]


_json = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text("abcyn1.:-", max_size=4), inner, max_size=4),
    max_leaves=12,
)


@given(st.dictionaries(st.text("abcd", min_size=1), _json))
def test_what_pyyaml_writes_is_read_back(value: dict[str, object]) -> None:
    assert one(yaml.safe_dump(value, default_style='"')) == value  # y and n without quotes are booleans to kubectl


@given(st.text("ab:-[]{}'\"\n #&*!|>%@`,?\t01.", max_size=60))
def test_no_text_breaks_the_reader(text: str) -> None:
    documents, bad = read_documents(text)
    assert all(not isinstance(one.value, float) or math.isfinite(one.value) for one in documents)
    assert all(one.line >= 1 for one in bad)
