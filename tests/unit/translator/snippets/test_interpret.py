"""What each directive becomes, and what is refused by name and line."""

from typing import Any

import pytest

from headgate.common.table import PathType, Timeouts
from headgate.translator.snippets.compose import Composed, compose, nowhere
from headgate.translator.snippets.errors import SnippetError
from headgate.translator.snippets.interpret import interpret
from headgate.translator.snippets.level import NOTHING, Location
from headgate.translator.snippets.scope import Context, Scope

CONSTANTS = {
    "ingress_name": "site",
    "location_path": "/",
    "namespace": "shop",
    "proxy_upstream_name": "shop-web-80",
    "service_name": "web",
    "service_port": "80",
}
LISTED = ["200", "201", "204", "206", "301", "302", "303", "304", "307", "308"]


def composed(text: str, server: str = "") -> Composed:
    outer = interpret(server, Scope(Context.SERVER)) if server else NOTHING
    return compose(outer, interpret(text, Scope(Context.LOCATION, CONSTANTS)))


def uses(text: str, server: str = "") -> list[tuple[str, dict[str, Any]]]:
    return [(use.name, use.config) for use in composed(text, server).plugins]


def the_use(text: str, server: str = "") -> dict[str, Any]:
    ((_, config),) = uses(text, server)
    return config


def steps(text: str) -> list[dict[str, Any]]:
    ((name, config),) = uses(text)
    assert name == "nginx-rewrite"
    return config["steps"]


def refusal(text: str, context: Context = Context.LOCATION) -> str:
    constants = CONSTANTS if context is Context.LOCATION else {}
    with pytest.raises(SnippetError) as caught:
        compose(NOTHING, interpret(text, Scope(context, constants)))
    return str(caught.value)


@pytest.mark.parametrize(
    ("text", "config"),
    [
        ('add_header X-A "1" always;', {"headers": {"add": ["X-A: 1"]}}),
        ("add_header X-A 1;", {"headers": {"add": ["X-A: 1"]}, "vars": [["status", "in", LISTED]]}),
        ('more_set_headers "X-A: $host";', {"headers": {"set": {"X-A": "${host}"}}}),
        ("more_set_headers X-A;", {"headers": {"remove": ["X-A"]}}),
        ('more_set_headers "X-A:";', {"headers": {"remove": ["X-A"]}}),
        (
            "more_set_headers -s '404 500,502' -t text/html \"X-A: 1\" 'X-B: 2';",
            {
                "headers": {"set": {"X-A": "1", "X-B": "2"}},
                "vars": [
                    ["status", "in", ["404", "500", "502"]],
                    ["sent_http_content_type", "~*", "^(?:text/html)[ \t]*(?:;|$)"],
                ],
            },
        ),
        ("more_clear_headers Server 'X-*';", {"headers": {"remove": ["Server", "X-*"]}}),
        ("proxy_hide_header X-A; proxy_hide_header X-B;", {"headers": {"remove": ["X-A", "X-B"]}}),
        ("proxy_hide_header X-A; proxy_pass_header X-A; more_clear_headers X;", {"headers": {"remove": ["X"]}}),
        ("expires 1h30m;", {"expires_s": 5400, "vars": [["status", "in", LISTED]]}),
        ("expires -1;", {"expires_s": -1, "vars": [["status", "in", LISTED]]}),
        (
            "expires epoch;",
            {
                "headers": {"set": {"Expires": "Thu, 01 Jan 1970 00:00:01 GMT", "Cache-Control": "no-cache"}},
                "vars": [["status", "in", LISTED]],
            },
        ),
        (
            "sub_filter http://a.b https://c;",
            {
                "filters": [{"regex": r"http://a\.b", "scope": "once", "replace": "https://c", "options": "i"}],
                "vars": [["sent_http_content_type", "~*", "^(?:text/html)[ \t]*(?:;|$)"]],
            },
        ),
        (
            "sub_filter a b; sub_filter_once off; sub_filter_types *;",
            {"filters": [{"regex": "a", "scope": "global", "replace": "b", "options": "i"}]},
        ),
    ],
)
def test_changes_of_answers_are_response_rewrites(text: str, config: dict[str, Any]) -> None:
    assert uses(text) == [("response-rewrite", config)]


@pytest.mark.parametrize(
    ("text", "config"),
    [
        ("proxy_set_header X-A $remote_addr;", {"headers": {"set": {"X-A": "${remote_addr}"}}}),
        ('proxy_set_header Authorization "";', {"headers": {"set": {"Authorization": ""}}}),
        ("proxy_set_header X-A $service_name.$namespace:$service_port;", {"headers": {"set": {"X-A": "web.shop:80"}}}),
        ("proxy_set_header X-Id $req_id;", {"headers": {"set": {"X-Id": "${request_id}"}}}),
        ("proxy_set_header Host other.example;", {"host": "other.example"}),
        ('more_set_input_headers "X-A: 1" "X-B:";', {"headers": {"set": {"X-A": "1"}, "remove": ["X-B"]}}),
        ("more_clear_input_headers 'X-*';", {"headers": {"remove": ["X-*"]}}),
        (
            'more_set_input_headers -r "X-A: 1";',
            {"headers": {"set": {"X-A": "1"}}, "_meta": {"filter": [["http_x_a", "~~", ""]]}},
        ),
    ],
)
def test_changes_of_requests_are_proxy_rewrites(text: str, config: dict[str, Any]) -> None:
    assert uses(text) == [("proxy-rewrite", config)]


def test_headers_that_others_read_are_set_last() -> None:
    config = the_use("proxy_set_header X-A 1; proxy_set_header X-B $http_x_a;")
    assert list(config["headers"]["set"]) == ["X-B", "X-A"]


@pytest.mark.parametrize(
    "text",
    [
        'proxy_set_header Upgrade $http_upgrade; proxy_set_header Connection "upgrade";',
        "proxy_set_header Host $http_host;",
        "proxy_buffer_size 128k; proxy_buffers 4 256k; client_body_buffer_size 1m; proxy_http_version 1.1;",
        "auth_basic off; expires off; # nothing",
    ],
)
def test_what_is_so_in_any_case_becomes_nothing(text: str) -> None:
    assert composed(text) == Composed((), {})


@pytest.mark.parametrize(
    ("text", "fields"),
    [
        ("client_max_body_size 10m;", {"max_body": 10 << 20}),
        ("client_max_body_size 0;", {"max_body": 1 << 50}),
        ("proxy_read_timeout 1m;", {"timeouts": Timeouts(read_s=60)}),
        ("proxy_send_timeout 5; proxy_connect_timeout 500ms;", {"timeouts": Timeouts(send_s=5, connect_s=0.5)}),
        ("proxy_request_buffering off;", {"buffer_request": False}),
        ("access_log off;", {"access_log_share": 0.0}),
    ],
)
def test_fields_of_the_route_are_set(text: str, fields: dict[str, Any]) -> None:
    assert composed(text).fields == fields


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("set $a x$host;", {"do": "set", "variable": "a", "value": "x${host}"}),
        ("set $args a=1;", {"do": "set", "variable": "args", "value": "a=1"}),
        ("break;", {"do": "break"}),
        ("return 403;", {"do": "return", "status": 403}),
        ('return 200 "ok\\n";', {"do": "return", "status": 200, "text": "ok\n"}),
        ("return 301 https://$host$uri;", {"do": "return", "status": 301, "text": "https://${host}${uri}"}),
        ("return https://b.example;", {"do": "return", "status": 302, "text": "https://b.example"}),
        (
            "rewrite (?i)/api/(.*) /$1 break;",
            {"do": "rewrite", "pattern": "(?i)/api/(.*)", "replacement": "/${1}", "flag": "break"},
        ),
        (
            "rewrite ^ https://b.example$request_uri;",
            {"do": "rewrite", "pattern": "^", "replacement": "https://b.example${request_uri}", "flag": "redirect"},
        ),
        (
            "rewrite ^(/a)$ $1/ permanent;",
            {"do": "rewrite", "pattern": "^(/a)$", "replacement": "${1}/", "flag": "permanent"},
        ),
    ],
)
def test_rewrite_phase_is_a_program(text: str, expected: dict[str, Any]) -> None:
    assert steps(text) == [expected]


@pytest.mark.parametrize(
    ("condition", "test"),
    [
        ("($arg_a)", {"variable": "arg_a"}),
        ("( $arg_a )", {"variable": "arg_a"}),
        ("($host = a)", {"variable": "host", "operator": "=", "value": "a"}),
        ('($host = "")', {"variable": "host", "operator": "=", "value": ""}),
        ("($host != a.b )", {"variable": "host", "operator": "=", "value": "a.b", "negated": True}),
        ("($http_user_agent ~* (a|b) )", {"variable": "http_user_agent", "operator": "~*", "value": "(a|b)"}),
        ("($http_user_agent ~* (a|b))", {"variable": "http_user_agent", "operator": "~*", "value": "(a|b)"}),
        ('($uri !~ "^/a{2}$")', {"variable": "uri", "operator": "~", "value": "^/a{2}$", "negated": True}),
        ("($args !~* ^$)", {"variable": "args", "operator": "~*", "value": "^$", "negated": True}),
    ],
)
def test_conditions_are_read_as_nginx_reads_them(condition: str, test: dict[str, Any]) -> None:
    (step,) = steps(f"if {condition} {{ return 403; }}")
    assert step["test"] == test


def test_headers_of_a_branch_stand_in_the_place_of_those_around_it() -> None:
    text = "add_header X-A out always; if ($arg_a) { add_header X-A in always; } if ($arg_b) { set $c 1; }"
    (_, (_, outer), (_, inner)) = uses(text)
    assert outer == {"headers": {"add": ["X-A: out"]}, "vars": [["nginx_branch", "!", "in", ["1"]]]}
    assert inner == {"headers": {"add": ["X-A: in"]}, "vars": [["nginx_branch", "==", "1"]]}


def test_filters_of_a_branch_come_behind_those_around_it() -> None:
    text = 'more_set_headers "X-A: out"; if ($arg_a) { more_set_headers "X-A: in"; more_set_input_headers "X-B: 1"; }'
    (_, (_, request), (_, outer), (_, inner)) = uses(text)
    assert request["_meta"] == {"filter": [["nginx_branch", "==", "1"]]}
    assert outer == {"headers": {"set": {"X-A": "out"}}}
    assert inner == {"headers": {"set": {"X-A": "in"}}, "vars": [["nginx_branch", "==", "1"]]}


def test_neighbours_are_joined_where_their_order_stays() -> None:
    assert the_use('more_set_headers "X-A: 1"; more_set_headers "X-B: 2";')["headers"]["set"] == {
        "X-A": "1",
        "X-B": "2",
    }
    both = uses('more_set_headers "X-A: 1"; more_clear_headers X-A;')
    assert [config["headers"] for _, config in both] == [{"set": {"X-A": "1"}}, {"remove": ["X-A"]}]


def test_changes_of_answers_run_in_their_order() -> None:
    plugins = composed('more_set_headers "X-A: 1"; more_clear_headers X-A; add_header X-B 1;').plugins
    assert [use.order for use in plugins] == [896, 897, 898]


def test_server_holds_where_the_location_says_nothing() -> None:
    server = (
        "add_header X-A s always; deny 10.0.0.1; proxy_read_timeout 5; client_max_body_size 1m; more_set_headers B;"
    )
    names = [name for name, _ in uses("", server)]
    assert names == ["fault-injection", "response-rewrite"]
    assert composed("proxy_read_timeout 6;", server).fields == {"max_body": 1 << 20, "timeouts": Timeouts(read_s=6)}
    both = the_use("add_header X-B l always;", "add_header X-A s always;")
    assert both["headers"]["add"] == ["X-B: l"]


def test_filters_of_server_and_location_add_up() -> None:
    assert the_use('more_set_headers "X-B: l";', 'more_set_headers "X-A: s";')["headers"]["set"] == {
        "X-A": "s",
        "X-B": "l",
    }


def test_program_of_the_server_goes_first() -> None:
    config = the_use("return 403;", "if ($arg_a) { return 404; }")
    assert [step["do"] for step in config["server"]] == ["if"]
    assert config["steps"] == [{"do": "return", "status": 403}]


def test_headers_to_upstreams_are_the_locations_alone() -> None:
    assert uses("", "proxy_set_header X-A 1; proxy_set_header Host x;") == []


def test_default_type_is_that_of_returned_texts() -> None:
    assert the_use("default_type text/plain; return 200 x;")["default_type"] == "text/plain"


@pytest.mark.parametrize(
    ("text", "alternatives"),
    [
        ("deny all;", None),
        ("allow all; deny all;", ()),
        ("deny 10.0.0.1;", [[["remote_addr", "ipmatch", ["10.0.0.1"]]]]),
        ("allow 10.0.0.0/8; deny all;", [[["remote_addr", "!", "ipmatch", ["10.0.0.0/8"]]]]),
        (
            "allow 10.0.0.5; deny 10.0.0.0/8;",
            [[["remote_addr", "!", "ipmatch", ["10.0.0.5"]], ["remote_addr", "ipmatch", ["10.0.0.0/8"]]]],
        ),
        ("limit_except GET { deny all; }", [[["request_method", "!", "in", ["GET", "HEAD"]]]]),
        (
            "limit_except POST { allow 10.0.0.1; deny all; }",
            [[["remote_addr", "!", "ipmatch", ["10.0.0.1"]], ["request_method", "!", "in", ["POST"]]]],
        ),
    ],
)
def test_first_rule_that_takes_an_address_decides(text: str, alternatives: Any) -> None:
    if alternatives == ():
        assert uses(text) == []
        return
    abort = the_use(text)["abort"]
    assert abort["http_status"] == 403
    assert abort.get("vars") == alternatives


def test_compression_is_that_of_nginx() -> None:
    config = the_use("gzip on; gzip_types text/css; gzip_min_length 1k; gzip_comp_level 5; gzip_vary on;")
    assert config == {
        "types": ["text/html", "text/css"],
        "min_length": 1024,
        "comp_level": 5,
        "vary": True,
    }
    assert uses("gzip off; gzip_types text/css;") == []


@pytest.mark.parametrize(
    ("head", "kind", "value", "ignores_case"),
    [
        ("/a", PathType.STRING_PREFIX, "/a", False),
        ("^~ /a", PathType.STRING_PREFIX, "/a", False),
        ("= /a", PathType.EXACT, "/a", False),
        ("~ ^/a/(b|c)", PathType.REGEX, "/a/(b|c)", False),
        ("~* \\.(js|css)$", PathType.REGEX, ".*(?:\\.(js|css)$)", True),
        ("~ ^/a|/b", PathType.REGEX, ".*(?:^/a|/b)", False),
    ],
)
def test_locations_have_paths(head: str, kind: PathType, value: str, ignores_case: bool) -> None:
    level = interpret(f"location {head} {{ return 403; }}", Scope(Context.SERVER))
    (location,) = level.of(Location)
    assert (location.path.type, location.path.value, location.path.ignore_case) == (kind, value, ignores_case)


def test_location_without_an_answer_is_not_found() -> None:
    (location,) = interpret("location /a { add_header X-A 1; }", Scope(Context.SERVER)).of(Location)
    first, last = nowhere(location.level).plugins
    assert (first.name, last.name, last.config["abort"]["http_status"]) == ("response-rewrite", "fault-injection", 404)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("\n  proxy_pass http://x;", "line 2, column 3: proxy_pass: is not followed here"),
        ("content_by_lua 'x';", "content_by_lua: is not followed here"),
        ("rewrite ^/a /b brake;", "'brake' is none of last"),
        ("rewrite ( /b break;", "is no pattern"),
        ("return 100;", "status 100 is not from 200 to 599"),
        ("return x;", "'x' is neither a status nor a URL"),
        ("set $host x;", "$host is a variable of the request"),
        ("if ($uri ~ (?<remote_user>.*)) { return 403; }", "$remote_user is a variable of the request"),
        ("rewrite (?<args>.*) /a break;", "not by a group of a pattern"),
        ("set $consumer_name x;", "$consumer_name is a variable of the request"),
        ("set $proxy_upstream_name x;", "a canary chooses another backend"),
        ("set host x;", "'host' is not the name of a variable"),
        ("add_header X-A $nothing;", "there is no variable $nothing"),
        ("add_header X-A $geoip_country_code;", "there is no database of places here"),
        ('add_header X-A "a$";', "a $ has to be followed by the name"),
        ("add_header X-A 1 2;", "'2' is not always"),
        ("add_header X-A;", "has too few or too many values"),
        ('add_header "X A" 1;', "is not the name of a header"),
        ("add_header Content-Length 1;", "written by the gateway alone"),
        ("more_set_headers -x 'A: 1';", "the option '-x' is not followed"),
        ("more_set_headers -s 4x4 'A: 1';", "'4x4' is not a status"),
        ("more_set_headers -t text/html;", "names no header"),
        ("more_set_input_headers -r 'Host: a.test';", "Host is changed without -r and -t only"),
        ("more_clear_headers Connection;", "written by the gateway alone"),
        ("location ~ ( { return 403; }", "does not stand here"),
        ("upstream a { server b; }", "is not followed here"),
        ("if ($host = a b) {}", "a condition is a variable"),
        ("if (-f $request_filename) { return 403; }", "looks for a file"),
        ("if ($host { }", "stands in parentheses"),
        ("if ($a) { if ($b) { return 403; } }", "does not stand here"),
        ("if ($host) { proxy_set_header X-A 1; }", "does not stand here in nginx"),
        ("location /a { return 403; }", "does not stand here"),
        ("limit_except FOO { deny all; }", "'FOO' is not a method"),
        ("deny host.example;", "neither an address nor a network"),
        ("auth_request_set $a $upstream_status;", "takes a variable, and $upstream_http_"),
        ("auth_request_set $host $upstream_http_a;", "$host is a variable of the request"),
        ("proxy_read_timeout 5x;", "is not a time"),
        ("client_max_body_size 5x;", "is not a size"),
        ("gzip maybe;", "must be on or off"),
        ("access_log /dev/stdout;", "off is followed"),
        ("expires @15h;", "is not followed"),
        ("sub_filter $host x;", "variables are not followed"),
        ("error_page 404 /x;", "a path is asked for as another request"),
        ("error_page 404 @x;", "there is no location @x in the server's snippet"),
        ("error_page 302 https://b.example;", "needs statuses from 400 to 599"),
        ("error_page 404 =99 https://b.example;", "status '99' is not from 200 to 599"),
        ("if ($namespace = a) { return 403; }", "is the same for all requests"),
    ],
)
def test_what_cannot_be_followed_refuses_the_snippet_by_name(text: str, message: str) -> None:
    assert message in refusal(text)


def test_nothing_of_a_refused_snippet_is_followed() -> None:
    assert "line 2" in refusal("add_header X-A 1;\nproxy_pass http://x;")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("if ($arg_a) { add_header X-A 1; }", "does not stand here in nginx"),
        ("add_header X-A $namespace;", "within a path of an Ingress only"),
        ("location @x { proxy_set_header A b; }", "followed with return, set, if and default_type only"),
        ("location /a { location /a/b { return 403; } }", "does not stand here"),
        ("server_name _;", "is not followed"),
        ("location ! /a { return 403; }", "'!' is none of =, ^~, ~ and ~*"),
        ("location a { return 403; }", "a path begins with a slash"),
        ("location = @a { return 403; }", "needs a path"),
    ],
)
def test_servers_have_rules_of_their_own(text: str, message: str) -> None:
    assert message in refusal(text, Context.SERVER)


def test_pages_of_errors_are_addresses_or_named_locations() -> None:
    text = "error_page 401 403 = https://sso.example/?rd=$request_uri; error_page 404 @gone; error_page 500 =200 @gone;"
    config = the_use(text, 'location @gone { default_type text/plain; return 410 "gone"; }')
    gone = {"steps": [{"do": "return", "status": 410, "text": "gone"}], "default_type": "text/plain"}
    assert config["errors"] == [
        {"statuses": [401, 403], "status": 0, "url": "https://sso.example/?rd=${request_uri}"},
        {"statuses": [404], **gone},
        {"statuses": [500], "status": 200, **gone},
    ]


@pytest.mark.parametrize(
    ("text", "host"),
    [
        ("proxy_set_header Host $host;", None),
        ("proxy_set_header Host b.test;", "b.test"),
        ("more_set_input_headers 'Host: b.test';", "b.test"),
    ],
)
def test_the_host_that_servers_get_may_be_another(text: str, host: str | None) -> None:
    level = interpret(text, Scope(Context.LOCATION, CONSTANTS))
    assert level.settings().get("host") == host


@pytest.mark.parametrize(
    "text", ["add_header X-A '';", "proxy_set_header Connection $connection_upgrade;", "sendfile on;"]
)
def test_some_directives_have_nothing_to_say(text: str) -> None:
    assert interpret(text, Scope(Context.LOCATION, CONSTANTS)).said == ()
