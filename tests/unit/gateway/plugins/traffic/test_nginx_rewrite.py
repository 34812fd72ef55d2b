"""Programs of nginx's rewrite phase."""

from typing import Any

import pytest

from headgate.common.plugins.checking import check_use
from headgate.common.plugins.errors import PluginFault
from headgate.common.table import PluginUse
from headgate.gateway.plugins.interface import Request, Response
from unit.gateway.plugins.running import answered, chain, request


def program(*steps: dict[str, Any], **more: Any) -> Any:
    return chain(("nginx-rewrite", {"steps": list(steps), **more}))


def rewrite(pattern: str, replacement: str, flag: str = "break") -> dict[str, Any]:
    return {"do": "rewrite", "pattern": pattern, "replacement": replacement, "flag": flag}


def when(variable: str, operator: str, value: str, *steps: dict[str, Any], **more: Any) -> dict[str, Any]:
    test = {"variable": variable, "operator": operator, "value": value, "negated": more.pop("negated", False)}
    return {"do": "if", "test": test, "steps": list(steps), **more}


def give(status: int, text: str | None = None) -> dict[str, Any]:
    return {"do": "return", "status": status, **({} if text is None else {"text": text})}


def sent(target: str, *steps: dict[str, Any], headers: Any = (), **given: Any) -> Request:
    asking = request(target, headers, **given)
    assert program(*steps).on_request(asking) is None
    assert not asking.fault()
    return asking


def answer(target: str, *steps: dict[str, Any], headers: Any = (), **given: Any) -> Response:
    got = program(*steps).on_request(request(target, headers, **given))
    assert isinstance(got, Response)
    return got


@pytest.mark.parametrize(
    ("target", "pattern", "replacement", "expected"),
    [
        ("/a/x?q=1", "^/a/(.*)$", "/b/${1}", "/b/x?q=1"),
        ("/a/x?q=1", "^/a/(.*)$", "/b?y=${1}", "/b?y=x&q=1"),
        ("/a/x?q=1", "^/a/(.*)$", "/b?", "/b"),
        ("/a/x?q=1", "^/a/(.*)$", "/b?y=1?", "/b?y=1"),
        ("/a%20b", "^/(.*)$", "/x/${1}", "/x/a%20b"),
        ("/%61/x", "^/a/(.*)$", "/b/${1}", "/b/x"),
        ("/a//x", "^/a/x$", "/b", "/b"),
        ("/A/x", "(?i)^/a/(.*)$", "/b/${1}", "/b/x"),
        ("/x/y", "^/(?!admin)(.*)$", "/b/${1}", "/b/x/y"),
        ("/z", "^/a", "/b", "/z"),
    ],
)
def test_rewrite_replaces_the_whole_path(target: str, pattern: str, replacement: str, expected: str) -> None:
    assert sent(target, rewrite(pattern, replacement)).target == expected


def test_break_ends_the_program_and_a_rewrite_without_a_flag_goes_on() -> None:
    steps = rewrite("^/a$", "/b", ""), rewrite("^/b$", "/c"), rewrite("^/c$", "/d")
    assert sent("/a", *steps).path == "/c"
    assert sent("/a", {"do": "break"}, *steps).path == "/a"


@pytest.mark.parametrize(
    ("replacement", "flag", "status", "location"),
    [
        ("${1}/", "redirect", 302, "http://a.example/a/?q=1"),
        ("${1}/?x=1", "permanent", 301, "http://a.example/a/?x=1&q=1"),
        ("https://b.example${1}?", "redirect", 302, "https://b.example/a"),
    ],
)
def test_rewrite_may_redirect(replacement: str, flag: str, status: int, location: str) -> None:
    got = answer("/a?q=1", rewrite("^(/a)$", replacement, flag))
    assert (got.status, got.headers.get("Location")) == (status, location)


def test_return_gives_a_text_of_the_default_type() -> None:
    got = program(give(200, "hello ${host}"), default_type="text/plain").on_request(request("/"))
    assert (got.status, got.body, got.headers.get("Content-Type")) == (200, b"hello a.example", "text/plain")


def test_return_of_a_redirect_names_scheme_and_host() -> None:
    got = answer("/x y", give(301, "https://${host}${request_uri}"))
    assert got.headers.get("Location") == "https://a.example/x%20y"
    assert answer("/", give(302, "//evil.example")).headers.get("Location") == "http://a.example//evil.example"


def test_return_of_an_error_without_a_text_is_a_refusal() -> None:
    got = answer("/", give(403))
    assert (got.status, got.is_refusal) == (403, True)


@pytest.mark.parametrize(
    ("operator", "value", "negated", "held"),
    [
        ("is-set", "", False, True),
        ("is-set", "", True, False),
        ("=", "Bot/1", False, True),
        ("=", "bot/1", False, False),
        ("=", "bot/1", True, True),
        ("~", "^Bot", False, True),
        ("~", "^bot", False, False),
        ("~*", "^bot", False, True),
        ("~", "^Bot", True, False),
        ("~", "Bot(?=/2)", False, False),
    ],
)
def test_if_compares_a_variable(operator: str, value: str, negated: bool, held: bool) -> None:
    step = when("http_user_agent", operator, value, give(403), negated=negated)
    got = program(step).on_request(request("/", [("User-Agent", "Bot/1")]))
    assert (got is not None) is held


@pytest.mark.parametrize("given", ["", "0", None])
def test_empty_and_zero_are_not_true(given: str | None) -> None:
    headers = [] if given is None else [("X-A", given)]
    assert program(when("http_x_a", "is-set", "", give(403))).on_request(request("/", headers)) is None


def test_set_keeps_what_a_pattern_caught_for_later_steps_and_plugins() -> None:
    steps = (
        when("host", "~", r"^(?<sub>[a-z]+)\.", {"do": "set", "variable": "first", "value": "${1}"}),
        {"do": "set", "variable": "both", "value": "${sub}-${first}"},
    )
    asking = request("/")
    rest = ("proxy-rewrite", {"headers": {"set": {"X-Both": "$both"}}})
    assert chain(("nginx-rewrite", {"steps": list(steps)}), rest).on_request(asking) is None
    assert asking.headers.get("X-Both") == "a-a"


def test_set_of_args_replaces_the_query() -> None:
    assert sent("/a?q=1", {"do": "set", "variable": "args", "value": "b=${arg_q}"}).target == "/a?b=1"


def test_steps_of_the_host_go_first() -> None:
    more = {"server": [give(404)]}
    got = program(give(403), **more).on_request(request("/"))
    assert got.status == 404


def test_last_condition_that_held_is_noted() -> None:
    asking = request("/?a=1&b=1")
    steps = [when(f"arg_{name}", "is-set", "", branch=at + 1) for at, name in enumerate("abc")]
    assert program(*steps).on_request(asking) is None
    assert asking.variables["nginx_branch"] == "2"


def test_header_of_a_proxy_is_what_the_client_sent() -> None:
    step = when("http_x_forwarded_proto", "=", "http", give(301, "https://${host}/"))
    asking = request("/", [("X-Forwarded-Proto", "http")])
    assert program(step).on_request(asking) is None
    claimed = request("/", [("X-Forwarded-Proto", "http")], claims={b"x-forwarded-proto": b"http"})
    assert program(step).on_request(claimed).status == 301


def test_steps_of_the_host_that_answer_are_noted() -> None:
    asking = request("/a")
    assert program(give(403), server=[give(404)]).on_request(asking).status == 404
    assert asking.variables["nginx_branch"] == "server"


def test_what_the_last_pattern_caught_is_known_to_other_plugins() -> None:
    asking = request("/a/b")
    assert program(rewrite("^/(.)/(.)$", "/${2}")).on_request(asking) is None
    assert (asking.variables["nginx_1"], asking.variables["nginx_2"]) == ("a", "b")


def errors(*pages: dict[str, Any]) -> Any:
    return chain(("nginx-rewrite", {"errors": list(pages)}))


@pytest.mark.parametrize(("status", "given"), [(None, 403), (0, 410), (200, 200)])
async def test_error_of_the_gateway_has_a_page_of_its_own(status: int | None, given: int) -> None:
    page = {"statuses": [403], "steps": [give(410, "gone")], **({} if status is None else {"status": status})}
    got = await answered(errors(page), request("/"), Response.refusal(403, "denied"))
    assert (got.status, got.body) == (given, b"gone")


async def test_error_of_the_upstream_stays() -> None:
    page = {"statuses": [403], "url": "https://b.example"}
    got = await answered(errors(page), request("/"), Response(403, from_upstream=True), b"mine")
    assert (got.status, got.body) == (403, b"mine")


@pytest.mark.parametrize(("status", "given"), [(0, 302), (303, 303), (200, 302)])
async def test_error_may_send_the_client_elsewhere(status: int, given: int) -> None:
    page = {"statuses": [401], "status": status, "url": "https://b.example/?rd=${request_uri}"}
    got = await answered(errors(page), request("/a?b=c"), Response.refusal(401, "unknown"))
    assert (got.status, got.headers.get("Location")) == (given, "https://b.example/?rd=/a?b=c")


def test_pattern_that_comes_to_its_bound_is_an_error_and_no_mismatch() -> None:
    got = answer("/" + "a" * 300 + "!", rewrite("(?!x)(a+)+$", "/b"))
    assert got.status == 500


@pytest.mark.parametrize(
    "config",
    [
        {},
        {"steps": [{"do": "rewrite", "pattern": "(", "replacement": "/"}]},
        {"steps": [when("a", "~", "(*LIMIT_MATCH=1)a")]},
        {"steps": [give(99)]},
        {"steps": [{"do": "set", "variable": "remote_user", "value": "root"}]},
        {"steps": [when("uri", "~", "(?<consumer_name>.*)")]},
        {"steps": [rewrite("(?<host>.*)", "/")]},
        {"steps": [give(200)] * 201},
    ],
)
def test_program_that_cannot_be_followed_is_refused(config: dict[str, Any]) -> None:
    with pytest.raises(PluginFault):
        check_use(PluginUse(name="nginx-rewrite", config=config))
