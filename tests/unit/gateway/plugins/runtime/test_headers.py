import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.gateway.plugins.interface import BadHeader, Headers
from headgate.gateway.proxy.errors import BadMessage, status_line
from headgate.gateway.proxy.heads.forward import forwarded_lines, forwarded_shape
from headgate.gateway.proxy.heads.reading import read_answer_fields, read_request_fields
from headgate.gateway.proxy.peer import Peer

LINES = b"Accept: a\r\nx-one:1\r\nACCEPT: b\r\n"


def test_lines_that_nobody_changes_stay_the_same_bytes() -> None:
    headers = Headers.from_lines(LINES)
    assert headers.get("accept") == "a, b"
    assert headers.to_lines() is LINES


def test_names_count_in_any_case_and_keep_their_spelling() -> None:
    headers = Headers.from_lines(LINES)
    assert headers.get_all("ACCEPT") == ["a", "b"]
    assert "X-One" in headers
    assert list(headers) == [("Accept", "a"), ("x-one", "1"), ("ACCEPT", "b")]


def test_set_puts_one_in_the_place_of_the_first() -> None:
    headers = Headers.from_lines(LINES)
    headers.set("accept", "c")
    assert headers.to_lines() == b"accept: c\r\nx-one:1\r\n"


def test_set_of_what_is_absent_appends() -> None:
    headers = Headers()
    headers.set("B", "2")
    headers.add("B", "3")
    assert headers.to_lines() == b"B: 2\r\nB: 3\r\n"


def test_remove_takes_all_of_a_name() -> None:
    headers = Headers.from_lines(LINES)
    assert headers.remove("Accept")
    assert not headers.remove("Accept")
    assert headers.to_lines() == b"x-one:1\r\n"


def test_name_within_a_value_or_another_name_is_not_found() -> None:
    headers = Headers.from_lines(b"A-B: c: B: d\r\nE: b:\r\n")
    assert headers.get("b") is None
    assert headers.get(" c") is None
    assert headers.get("a-b: c") is None
    assert "e" in headers
    assert headers.get("€") is None


@given(
    st.lists(st.tuples(st.sampled_from("aAbBc"), st.text("xy:, ", max_size=3)), max_size=6),
    st.sampled_from("abC"),
    st.booleans(),
)
def test_lines_say_the_same_as_a_list_of_pairs(pairs, name, sets) -> None:
    headers = Headers.from_lines("".join(f"{key}: {value}\r\n" for key, value in pairs).encode())
    known = [(key, value.strip()) for key, value in pairs]
    mine = [value for key, value in known if key.lower() == name.lower()]
    assert headers.get_all(name) == mine
    assert headers.get(name) == (", ".join(mine) if mine else None)
    if sets:
        headers.set(name, "new")
        first = next((at for at, (key, _) in enumerate(known) if key.lower() == name.lower()), len(known))
        known[first : first + 1] = [(name, "new")]
        known = [(key, value) for at, (key, value) in enumerate(known) if at == first or key.lower() != name.lower()]
    else:
        assert headers.remove(name) is bool(mine)
        known = [(key, value) for key, value in known if key.lower() != name.lower()]
    assert list(headers) == known
    assert len(headers) == len(known)


def test_copy_is_changed_apart() -> None:
    headers = Headers.from_lines(LINES)
    copied = headers.copy()
    copied.remove("accept")
    assert "accept" in headers
    assert "accept" not in copied


def test_list_gets_a_member_once() -> None:
    headers = Headers([("Vary", "Origin")])
    headers.add_to_list("vary", "Accept-Encoding")
    headers.add_to_list("Vary", "origin")
    assert headers.get("Vary") == "Origin, Accept-Encoding"


def test_bytes_beyond_ascii_pass_unchanged() -> None:
    headers = Headers.from_lines("X: ü\r\n".encode())
    headers.set("Y", "1")
    assert headers.to_lines() == "X: ü\r\nY: 1\r\n".encode()


@pytest.mark.parametrize("value", ["a\r\nB: c", "a\nb", "a\rb", "a\0b", "a\x7f", "€"])
def test_value_that_could_split_a_head_is_refused(value) -> None:
    headers = Headers()
    with pytest.raises(BadHeader, match="line breaks"):
        headers.set("A", value)
    with pytest.raises(BadHeader, match="line breaks"):
        headers.add("A", value)


@pytest.mark.parametrize("name", ["", "a b", "a:", "a\r\n", "ü", "a\0"])
def test_name_that_is_none_is_refused(name) -> None:
    with pytest.raises(BadHeader, match="not the name"):
        Headers([(name, "x")])


@pytest.mark.parametrize("name", ["Content-Length", "transfer-encoding", "Connection", "Host", "Upgrade", "TE"])
def test_field_that_frames_the_message_is_refused(name) -> None:
    with pytest.raises(BadHeader, match="gateway alone"):
        Headers().set(name, "1")


@given(st.text(max_size=8), st.text(max_size=20))
def test_whatever_is_set_is_one_line_or_refused(name, value) -> None:
    headers = Headers()
    try:
        headers.set(name, value)
    except BadHeader:
        assert len(headers) == 0
    else:
        assert headers.to_lines().count(b"\n") == 1
        assert headers.to_lines().endswith(b"\r\n")


NAMES = ("Accept", "accept", "X-One", "x-one-more", "Trailer", "Via", "X-Forwarded-For", "Connection", "x-request-id")
ASKED = (*NAMES, "Date", "X-", "x-forwarded-proto", "not a name", "Access-Control-Allow-Origin")
heads = st.lists(st.tuples(st.sampled_from(NAMES), st.sampled_from(["a", "1, 2", "keep-alive", "x-one"])), max_size=6)
changes = st.lists(
    st.tuples(
        st.sampled_from(["set", "add", "set_default", "remove", "add_to_list", "set_lines", "extend"]),
        st.sampled_from(["Accept", "ACCEPT", "X-One", "Date", "via"]),
    ),
    max_size=6,
)


def change(headers: Headers, kind: str, name: str) -> None:
    if kind == "remove":
        headers.remove(name)
    elif kind == "set_lines":
        headers.set_lines(("X-Limit", "x-left"), b"x-l", b"X-Limit: 1\r\nX-Left: 0\r\n")
    elif kind == "extend":
        headers.extend(b"%b: extended\r\n" % name.encode())
    else:
        getattr(headers, kind)(name, "new")


def looked_at(headers: Headers) -> list[object]:
    begins = [b"date:", b"x-", b"x-l", b"x-limit:", b"accept", b"access-control-", b"via:"]
    found = [[headers.get(name), headers.get_all(name), name in headers] for name in (*ASKED, "X-Left", "x-limit")]
    return [*found, [headers.has_any(begin) for begin in begins], headers.to_lines()]


@given(heads, changes, st.booleans())
def test_known_names_change_nothing_but_the_search(pairs, steps, is_request) -> None:
    fields = tuple(name.encode() for name, _ in pairs), tuple(value.encode() for _, value in pairs)
    try:
        if is_request:
            read = read_request_fields(fields, 100)
        else:
            read = read_answer_fields(200, status_line(200), fields, 100)
    except BadMessage:
        return
    lines = read.lines
    if is_request:
        peer = Peer(b"192.0.2.1", b"http", b"80")
        lines = forwarded_lines(read, peer, peer)
    searched, known = Headers.from_lines(lines), Headers.from_lines(lines, read.lines_shape)
    assert read.lines_shape is read.shape
    assert looked_at(known) == looked_at(searched)
    for kind, name in steps:
        change(searched, kind, name)
        change(known, kind, name)
        assert looked_at(known) == looked_at(searched)


def test_a_default_is_set_only_where_no_field_is() -> None:
    headers = Headers([("X-One", "1")])
    headers.set_default("x-one", "2")
    headers.set_default("X-Two", " 2 ")
    assert headers.to_lines() == b"X-One: 1\r\nX-Two: 2\r\n"
    for name, value in [("X-Three", "a\r\nb: c"), ("X-Three", "\u20ac"), ("not a name", "a"), ("Host", "a")]:
        with pytest.raises(BadHeader):
            headers.set_default(name, value)
    assert len(headers) == 2


def test_names_are_not_known_of_lines_that_tell_what_a_trusted_proxy_said() -> None:
    read = read_request_fields(((b"Accept",), (b"a",)), 100)
    assert forwarded_shape(read) is read.lines_shape is not None
    read.passes_claims = True
    assert forwarded_shape(read) is None


def test_names_are_not_known_of_lines_that_somebody_replaced() -> None:
    read = read_request_fields(((b"Accept",), (b"a",)), 100)
    assert read.lines_shape is not None
    assert not read.lines_shape.names.has_any(b"x-one:")
    read.lines += b"X-One: 1\r\n"
    assert read.lines_shape is None
