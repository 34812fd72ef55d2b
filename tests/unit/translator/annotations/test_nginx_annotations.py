"""The table of ingress-nginx' annotations: that it is whole, and how values are read."""

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.translator.annotations.nginx import NGINX_ROWS, NGINX_TABLE, NginxAnnotation, Risk, values
from headgate.translator.annotations.nginx.page import write_page

PAGE = Path(__file__).parents[4] / "docs" / "nginx-annotations.md"
REMOVED_OR_OLD = 15
TEXT = st.text(alphabet="0123456789smhkGi.,:=~!/*[]{}()^|?+-_ $&%\n\r\tabcxézA\"'`;\\", max_size=40)


def test_the_page_is_current() -> None:
    told = "python -m headgate.translator.annotations.nginx.page > docs/nginx-annotations.md"
    assert PAGE.read_text() == write_page(), told


def test_all_names_of_the_last_release_are_there_once() -> None:
    assert len(NGINX_ROWS) == len(NGINX_TABLE.rows) == 136 + REMOVED_OR_OLD


@pytest.mark.parametrize("row", NGINX_ROWS, ids=lambda row: row.name)
def test_the_example_can_be_read(row: NginxAnnotation) -> None:
    row.read(row.example)


@pytest.mark.parametrize("row", NGINX_ROWS, ids=lambda row: row.name)
def test_a_row_says_what_it_does_or_why_it_does_nothing(row: NginxAnnotation) -> None:
    assert bool(row.does) or bool(row.ignored or row.refused)
    assert not (row.ignored and row.refused)


@given(st.sampled_from(NGINX_ROWS), TEXT)
def test_whatever_is_written_is_read_or_refused_with_what_would_be_right(row: NginxAnnotation, text: str) -> None:
    refusal = "must"
    try:
        row.read(text)
    except ValueError as error:
        refusal = str(error)
    assert refusal.startswith("must")


@given(st.sampled_from([row for row in NGINX_ROWS if row.does and row.risk is not Risk.CRITICAL]), TEXT)
def test_no_value_carries_a_line_end_or_a_quote(row: NginxAnnotation, text: str) -> None:
    try:
        value = row.read(text.strip())
    except ValueError:
        return
    assert not re.search(r"[\n\r\"'`;]", value if isinstance(value, str) else "")


@pytest.mark.parametrize(("text", "size"), [("0", 0), ("8m", 8 << 20), ("1G", 1 << 30), ("512k", 512 << 10), ("7", 7)])
def test_sizes_are_those_of_nginx(text: str, size: int) -> None:
    assert values.size(text) == size


@pytest.mark.parametrize("text", ["", "m", "8mb", "-1", "1.5m"])
def test_what_is_no_size_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="must be a size"):
        values.size(text)


def test_a_time_with_a_unit_is_refused_with_the_number() -> None:
    with pytest.raises(ValueError, match="without a unit: 50"):
        values.seconds("50s")


@pytest.mark.parametrize("text", ["yes", "on", "TrUe", "2", ""])
def test_what_go_takes_for_no_boolean_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="must be"):
        values.boolean(text)


def test_conditions_of_the_next_upstream_are_fields_of_retries() -> None:
    assert values.next_upstream("error timeout http_502 non_idempotent") == {
        "on": ("connect", "reset", "timeout", "status"),
        "statuses": (502,),
        "unsafe": True,
    }
    assert values.next_upstream("off") == {"attempts": 0}


@pytest.mark.parametrize("text", ["", "sometimes", "http_501", "error;"])
def test_other_conditions_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="must be words"):
        values.next_upstream(text)


def test_origins_that_are_none_are_left_out() -> None:
    found = values.origins("https://a.example:8443, x, https://*.b.example,")
    assert found == {"origins": ("https://a.example:8443", "https://*.b.example"), "left_out": ("x",)}
    assert values.origins("https://a.example, *") == {"origins": ("*",)}


def test_hashing_is_by_variables() -> None:
    assert [(key.source, key.name) for key in values.hash_by("$remote_addr${http_x_user}-$arg_id")] == [
        ("client", ""),
        ("header", "x-user"),
        ("query", "id"),
    ]


@pytest.mark.parametrize("text", ["plain", "$geoip_city", "$request_uri;", "$http_"])
def test_what_cannot_be_hashed_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="must be variables"):
        values.hash_by(text)
