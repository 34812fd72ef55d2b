import pytest

from headgate.common.plugins.checking import check_use
from headgate.common.plugins.errors import PluginFault
from headgate.common.table import PluginUse
from headgate.gateway.plugins.interface import Request, Response
from headgate.gateway.plugins.interface.errors import PluginRefused
from headgate.gateway.plugins.kit.patterns import SearchTime, SearchTooLong
from unit.gateway.plugins.running import chain, request


def rewritten(config, target: str = "/old/x?q=1", headers=(), **given) -> Request:
    asking = request(target, headers, **given)
    assert chain(("proxy-rewrite", config)).on_request(asking) is None
    return asking


def test_host_may_refer_to_the_request() -> None:
    assert rewritten({"host": "${arg_q}.$host:81"}).upstream_host == "1.a.example:81"


def test_uri_replaces_the_path_and_keeps_the_query() -> None:
    assert rewritten({"uri": "/new"}).target == "/new?q=1"


def test_query_of_the_uri_goes_before_the_requests_own() -> None:
    assert rewritten({"uri": "/new?a=b"}).target == "/new?a=b&q=1"


def test_uri_may_refer_to_the_request() -> None:
    assert rewritten({"uri": "/$host/$arg_q$uri"}).target == "/a.example/1/old/x?q=1"


def test_first_pattern_that_matches_counts() -> None:
    config = {"regex_uri": ["^/no/(.*)", "/none/$1", "^/old/(.*)$", "/$1/new", "^/", "/never"]}
    assert rewritten(config).path == "/x/new"


def test_uri_goes_before_patterns() -> None:
    assert rewritten({"uri": "/u", "regex_uri": ["^/old", "/r"]}).path == "/u"


def test_pattern_may_ignore_case() -> None:
    assert rewritten({"regex_uri": ["^/OLD/(.*)", "/$1"], "regex_ignore_case": True}).path == "/x"


def test_what_a_pattern_caught_is_known_to_headers() -> None:
    config = {"regex_uri": ["^/old/(.*)$", "/new"], "headers": {"set": {"X-Rest": "${1}-$remote_addr"}}}
    assert rewritten(config).headers.get("x-rest") == "x-192.0.2.1"


@pytest.mark.parametrize(
    ("prefix", "replacement", "path", "expected"),
    [
        ("/foo", "/xyz", "/foo/bar", "/xyz/bar"),
        ("/foo/", "/xyz/", "/foo/bar", "/xyz/bar"),
        ("/foo", "/xyz", "/foo", "/xyz"),
        ("/foo", "", "/foo/bar", "/bar"),
        ("/foo", "/", "/foo/bar", "/bar"),
        ("/foo", "/", "/foo", "/"),
        ("/foo", "/", "/foo/", "/"),
        ("/", "/xyz", "/bar", "/xyz/bar"),
        ("/foo", "/xyz", "/foobar", "/foobar"),
    ],
)
def test_prefix_is_replaced_by_whole_elements(prefix, replacement, path, expected) -> None:
    config = {"replace_prefix": {"prefix": prefix, "replacement": replacement}}
    assert rewritten(config, path).path == expected


def test_first_prefix_is_stripped_and_told() -> None:
    changed = rewritten({"strip_prefixes": ["/a", "/old"], "forwarded_prefix": True})
    assert changed.path == "/x"
    assert changed.headers.get("X-Forwarded-Prefix") == "/old"


def test_prefix_is_stripped_by_pattern_at_the_beginning_only() -> None:
    assert rewritten({"strip_regex": ["/[a-z]+"]}, "/1/api/x").path == "/1/api/x"
    assert rewritten({"strip_regex": ["/v[0-9]+"]}, "/v1/api/x").path == "/api/x"


def test_prefix_is_added_last() -> None:
    assert rewritten({"strip_prefixes": ["/old"], "add_prefix": "/in"}).path == "/in/x"


def test_a_prefix_stands_alone_where_nothing_is_left_of_the_path() -> None:
    cut, added = ("proxy-rewrite", {"strip_prefixes": ["/old"]}), ("proxy-rewrite", {"add_prefix": "/z"})
    for path, expected in (("/old", "/z"), ("/old/", "/z/"), ("/old/x", "/z/x")):
        asking = request(path)
        for rewrite in (cut, added):
            assert chain(rewrite).on_request(asking) is None
        assert asking.path == expected


@pytest.mark.parametrize("path", ["/a//b", "/a/./b", "/a/../b", "/a/..", "//"])
def test_a_changed_path_that_is_not_clean_may_be_refused(path: str) -> None:
    refusal = chain(("proxy-rewrite", {"uri": path, "refuses_unclean": True})).on_request(request("/old/x"))
    assert isinstance(refusal, Response)
    assert refusal.status == 400


def test_what_was_asked_for_stays_known() -> None:
    changed = rewritten({"uri": "/new"})
    assert changed.original_target == "/old/x?q=1"


def test_host_and_method_change() -> None:
    changed = rewritten({"host": "other:81", "method": "POST"})
    assert (changed.upstream_host, changed.method) == ("other:81", "POST")


def test_headers_are_removed_set_and_added() -> None:
    changes = {"remove": ["Gone"], "set": {"One": "$scheme", "Empty": ""}, "add": {"Two": 2}}
    headers = [("gone", "1"), ("one", "a"), ("ONE", "b"), ("Empty", "x"), ("Two", "1")]
    changed = rewritten({"headers": changes}, headers=headers)
    assert list(changed.headers) == [("One", "http"), ("Two", "1"), ("Two", "2")]


def test_flat_headers_are_set() -> None:
    assert rewritten({"headers": {"X-A": "1"}}, headers=[("X-A", "0")]).headers.get_all("X-A") == ["1"]


def test_what_a_client_sends_cannot_break_the_request_line() -> None:
    changed = rewritten({"uri": "/x/$http_x"}, headers=[("X", "a b#c?d=\xfc")])
    assert changed.target == "/x/a%20b%23c?d=%FC&q=1"
    assert changed.fault() == ""


@pytest.mark.parametrize(
    ("config", "field"),
    [
        ({}, "config"),
        ({"uri": "relative"}, "config.uri"),
        ({"regex_uri": ["^/a"]}, "config.regex_uri"),
        ({"regex_uri": ["(", "/"]}, "config.regex_uri"),
        ({"host": "a b"}, "config.host"),
        ({"headers": {"set": {"Content-Length": "1"}}}, "config.headers.set.Content-Length.[key]"),
        ({"headers": {"set": {"X": "a\r\nb"}}}, "config.headers.set.X"),
    ],
)
def test_bad_configuration_names_its_field(config, field) -> None:
    with pytest.raises(PluginRefused) as caught:
        chain(("proxy-rewrite", config))
    assert caught.value.field == field


@pytest.mark.parametrize(
    "headers",
    [{"host": "other.example"}, {"Host": "other.example", "X-A": "1"}, {"set": {"Host": "other.example"}}],
)
def test_a_host_among_the_headers_is_the_host_that_is_sent(headers) -> None:
    found = rewritten({"headers": headers})
    assert (found.upstream_host, found.headers.get("x-a")) == ("other.example", headers.get("X-A"))


def test_the_host_that_is_given_apart_goes_before_one_among_the_headers() -> None:
    assert rewritten({"host": "a.test", "headers": {"set": {"host": "b.test"}}}).upstream_host == "a.test"


def test_several_values_are_headers_of_one_name() -> None:
    config = {"headers": {"set": {"X-A": ["v1", "v2"]}, "add": {"X-B": ["$host", "2"]}}}
    found = rewritten(config, headers=[("x-a", "old"), ("x-b", "1")]).headers
    assert (found.get_all("x-a"), found.get_all("x-b")) == (["v1", "v2"], ["1", "a.example", "2"])


def test_patterns_together_have_a_bound() -> None:
    pairs = [text for number in range(1800) for text in (f"/[a-z]{{20}}/{number}", "/")]
    with pytest.raises(PluginFault, match="one pattern too many"):
        check_use(PluginUse(name="proxy-rewrite", config={"regex_uri": pairs}))


def test_a_path_that_costs_many_patterns_much_is_an_error_of_its_request() -> None:
    pairs = [text for number in range(39) for text in (f"[ab]*a[ab]{{450}}c{number}", "/")]
    plugins = chain(("proxy-rewrite", {"regex_uri": pairs}))
    response = plugins.on_request(request("/" + "ab" * 4000 + "a" * 4000))
    assert isinstance(response, Response)
    assert (response.status, response.reason) == (500, "plugin proxy-rewrite failed")
    assert plugins.on_request(request("/short")) is None


def test_the_time_for_patterns_is_looked_at_for_long_texts() -> None:
    times = iter([0.0, 0.09, 0.11])
    time_left = SearchTime("x" * 1000, lambda: next(times))
    time_left.check()
    with pytest.raises(SearchTooLong):
        time_left.check()
    SearchTime("x" * 100, lambda: next(times)).check()


def test_headers_are_removed_by_the_beginning_of_their_names() -> None:
    found = rewritten({"headers": {"remove": ["x-a*"]}}, headers=[("X-A", "1"), ("X-Ab", "2"), ("X-B", "3")])
    assert [name for name, _ in found.headers] == ["X-B"]
