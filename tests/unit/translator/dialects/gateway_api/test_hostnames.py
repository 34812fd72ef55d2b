"""Hostnames of listeners and routes, and what they have in common."""

import pytest

from headgate.translator.dialects.gateway_api.hostnames import intersect, normal, precedence, table_host, takes


@pytest.mark.parametrize(
    ("one", "other", "common"),
    [
        ("", "", ""),
        ("", "a.example.com", "a.example.com"),
        ("a.example.com", "", "a.example.com"),
        ("*.example.com", "a.example.com", "a.example.com"),
        ("*.example.com", "a.b.example.com", "a.b.example.com"),
        ("*.example.com", "*.b.example.com", "*.b.example.com"),
        ("*.b.example.com", "*.example.com", "*.b.example.com"),
        ("*.example.com", "*.example.com", "*.example.com"),
        ("a.example.com", "*.example.com", "a.example.com"),
        ("*.example.com", "example.com", None),
        ("*.example.com", "badexample.com", None),
        ("*.example.com", "*.example.org", None),
        ("a.example.com", "b.example.com", None),
        ("a.example.com", "*.a.example.com", None),
    ],
)
def test_two_hostnames_have_the_more_specific_one_in_common(one: str, other: str, common: str | None) -> None:
    assert intersect(one, other) == common
    assert intersect(other, one) == common


def test_a_wildcard_takes_narrower_wildcards_and_no_wider_ones() -> None:
    assert takes("*.com", "*.example.com")
    assert not takes("*.example.com", "*.com")
    assert not takes("*.example.com", "")


def test_a_wildcard_is_one_for_names_of_any_depth_in_the_table() -> None:
    assert [table_host(each) for each in ("", "*.a.com", "a.com")] == ["*", "**.a.com", "a.com"]


def test_upper_case_and_a_star_are_read_as_they_are_meant() -> None:
    assert [normal(each) for each in ("A.Example.COM", "*", "")] == ["a.example.com", "", ""]


@pytest.mark.parametrize(
    ("hostname", "written", "found"),
    [
        ("a.b.example", ["a.b.example", "*.example"], 0),
        ("a.b.example", ["*.b.example"], -1),
        ("a.b.example", ["*.example", "*.b.example", "c.example"], -1),
        ("a.b.example", [], -3),
        ("*.b.example", ["*.example"], -1),
        ("*.b.example", ["*.b.example"], 0),
        ("", [], 0),
    ],
)
def test_the_wider_a_routes_own_hostname_is_the_less_it_counts(hostname: str, written: list[str], found: int) -> None:
    assert precedence(hostname, written) == found
