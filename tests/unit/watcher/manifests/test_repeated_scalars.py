"""Keys and values that a stream repeats are read as where they stand alone."""

from hypothesis import given
from hypothesis import strategies as st

from headgate.watcher.sources.manifests.documents import read_documents

_TEXTS = ("name", "y", "on", "80", "1.0", "0x1f", "1_0", "1:30", "~", "<<", "null", ".5", "-", "a b", "1.2.3")
_STYLES = ("{}", "'{}'", '"{}"', "! {}", "!!str {}", "!!int {}", "!!null {}", "&a {}", "&a '{}'", "!own {}")

_scalars = st.builds(str.format, st.sampled_from(_STYLES), st.sampled_from(_TEXTS))


_values = _scalars | st.just("{m: 1}")
_documents = st.builds("? {}\n: {}\n".format, _scalars, _values) | st.builds("- {}\n- {}\n".format, _scalars, _values)


def _alone(text: str) -> list[object]:
    return [document.value for document in read_documents(text)[0]]


def _is_good(text: str) -> bool:
    return not read_documents(text)[1]


@given(st.lists(_documents.filter(_is_good), max_size=12))
def test_what_was_read_before_does_not_change_what_is_read(texts: list[str]) -> None:
    documents, bad = read_documents("---\n" + "---\n".join(texts))
    assert bad == []
    found = [document.value for document in documents if document.value is not None]
    expected = [value for text in texts for value in _alone(text)]
    assert repr(found) == repr(expected)  # 1 and True are equal, their texts are not


def test_a_key_without_quotes_is_a_word_although_it_stood_in_quotes_before() -> None:
    assert _alone("a: y\n'y': y\n---\ny: 'y'\n") == [{"a": True, "y": True}, {"true": "y"}]


def test_a_key_without_quotes_merges_although_it_stood_in_quotes_before() -> None:
    assert _alone("a: <<\n'<<': 1\n---\n<<: {b: 2}\n") == [{"a": "<<", "<<": 1}, {"b": 2}]


def test_more_scalars_than_are_remembered_are_read() -> None:
    text = "".join(f"k{number}: {number}\n" for number in range(3000))
    (document, again), _ = read_documents(f"{text}---\n{text}")
    assert document.value == again.value == {f"k{number}": number for number in range(3000)}
