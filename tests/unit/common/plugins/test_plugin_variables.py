"""Variables that configurations of plugins name, and the warnings about them."""

import pytest

from headgate.common.plugins.cautions import cautions
from headgate.common.plugins.templates import body_is_read
from headgate.common.plugins.variables import Phase
from headgate.common.table import PluginUse

NETWORKS = {"trusted_addresses": ["10.0.0.0/8"]}


def warned(name: str, config) -> list[tuple[str, str]]:
    return [(one.field, one.message) for one in cautions(PluginUse(name=name, config=config))]


@pytest.mark.parametrize(
    ("name", "config", "field"),
    [
        ("proxy-rewrite", {"uri": "/$hoost"}, "config.uri"),
        ("proxy-rewrite", {"regex_uri": ["^/a$", "/${hoost}"]}, "config.regex_uri[1]"),
        ("proxy-rewrite", {"headers": {"X-A": "$hoost"}}, "config.headers.X-A"),
        ("proxy-rewrite", {"headers": {"set": {"X-A": "$hoost"}}}, "config.headers.set.X-A"),
        ("proxy-rewrite", {"headers": {"add": {"X-A": ["1", "$hoost"]}}}, "config.headers.add.X-A[1]"),
        ("redirect", {"uri": "https://$hoost/"}, "config.uri"),
        ("forward-auth", {"extra_headers": {"x": "$hoost"}}, "config.extra_headers.x"),
        ("response-rewrite", {"headers": {"add": ["X: $hoost"]}}, "config.headers.add[0]"),
        ("response-rewrite", {"vars": [["hoost", "==", "1"]]}, "config.vars"),
        ("echo", {"headers": {"x": "$hoost"}}, "config.headers.x"),
        ("limit-count", {"key": "hoost", "count": 1}, "config.key"),
        ("limit-count", {"key": "$hoost $uri", "key_type": "var_combination"}, "config.key"),
        ("limit-req", {"rules": [{"key": "${hoost ?? a}"}]}, "config.rules[0].key"),
        ("limit-conn", {"conn": "${hoost ?? 5}"}, "config.conn"),
        (
            "workflow",
            {"rules": [{"actions": [["limit-count", {"key": "hoost"}]]}]},
            "config.rules[0].actions[0][1].key",
        ),
        ("workflow", {"rules": [{"case": [["hoost", "==", "1"]]}]}, "config.rules[0].case"),
        ("traffic-split", {"rules": [{"match": [{"vars": [["hoost", "==", "1"]]}]}]}, "config.rules[0].match[0].vars"),
        ("proxy-cache", {"cache_key": ["$uri", "$hoost"]}, "config.cache_key[1]"),
        ("mocking", {"response_example": "$hoost"}, "config.response_example"),
        ("fault-injection", {"abort": {"body": "$hoost"}}, "config.abort.body"),
        (
            "api-breaker",
            {"break_response_headers": [{"key": "x", "value": "$hoost"}]},
            "config.break_response_headers[0].value",
        ),
        ("http-logger", {"log_format": {"a": {"b": "$hoost"}}}, "config.log_format.a.b"),
        ("opentelemetry", {"additional_attributes": ["hoost"]}, "config.additional_attributes[0]"),
        ("real-ip", {"source": "hoost", **NETWORKS}, "config.source"),
        ("cors", {"_meta": {"filter": [["hoost", "==", "1"]]}}, "config._meta.filter"),
    ],
)
def test_an_unknown_variable_is_named_with_the_nearest(name, config, field) -> None:
    assert warned(name, config) == [(field, "there is no variable $hoost, so it is empty; the nearest is $host")]


@pytest.mark.parametrize(
    "text",
    [
        "$host$uri",
        "$1 ${2}",
        "${arg_a ?? 5}",
        "$http_x $cookie_y $arg_z",
        "$post_arg.a.b ${post_arg.a[0]}",
        "5 $ and $-",
    ],
)
def test_what_is_known_is_no_caution(text) -> None:
    assert warned("proxy-rewrite", {"headers": {"set": {"X-A": text}}}) == []


@pytest.mark.parametrize(
    ("name", "config", "told"),
    [
        ("proxy-rewrite", {"headers": {"X-A": "$status"}}, "known only once the upstream has answered"),
        ("proxy-rewrite", {"headers": {"X-A": "$sent_http_a"}}, "known only once the upstream has answered"),
        ("response-rewrite", {"headers": {"set": {"X-A": "$request_time"}}}, "known only in loggers"),
        ("limit-count", {"key": "upstream_addr"}, "known only once the upstream has answered"),
    ],
)
def test_a_variable_that_is_known_later_is_a_caution(name, config, told) -> None:
    ((_, message),) = warned(name, config)
    assert told in message


@pytest.mark.parametrize(
    ("name", "config"),
    [
        ("response-rewrite", {"headers": {"set": {"X-A": "$balancer_ip:$balancer_port $status"}}}),
        ("http-logger", {"log_format": {"a": "$request_time $status $upstream_addr $sent_http_x"}}),
    ],
)
def test_a_variable_is_no_caution_where_it_is_known(name, config) -> None:
    assert warned(name, config) == []


@pytest.mark.parametrize(
    ("name", "config", "phase"),
    [
        ("forward-auth", {"extra_headers": {"t": "$post_arg.t"}}, Phase.REQUEST),
        ("limit-count", {"key": "post_arg_user"}, Phase.REQUEST),
        ("response-rewrite", {"headers": {"set": {"t": "${post_arg.t}"}}}, Phase.ANSWER),
        ("http-logger", {"log_format": {"t": "$post_arg.t"}}, Phase.END),
        ("proxy-rewrite", {"headers": {"set": {"t": "post_arg.t"}}}, None),
    ],
)
def test_templates_say_when_they_read_the_body(name, config, phase) -> None:
    assert body_is_read(name, config) is phase
