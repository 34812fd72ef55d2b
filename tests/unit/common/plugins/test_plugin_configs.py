"""What plugins are told, checked where it was written."""

import re
from ipaddress import ip_network

import bcrypt
import pytest

from headgate.common.plugins.catalogue import CONFIGS
from headgate.common.plugins.checking import check_use
from headgate.common.plugins.elsewhere import ELSEWHERE
from headgate.common.plugins.errors import PluginFault
from headgate.common.plugins.fields import check_network, read_network
from headgate.common.sealing import ClusterValue
from headgate.common.table import PluginUse

SEALED = ClusterValue(boxes={"r": "x"})


def fault_of(name: str, config: dict[str, object] | None = None, **more: object) -> PluginFault:
    with pytest.raises(PluginFault) as caught:
        check_use(PluginUse.model_validate({"name": name, "config": config or {}, **more}))
    return caught.value


@pytest.mark.parametrize(
    ("name", "config", "told"),
    [
        ("limit-req", {"rate": 0, "burst": 1}, "config.rate: must be greater than 0, but is 0"),
        ("limit-req", {"rate": 1}, "config.burst: is required"),
        ("limit-count", {"count": 1}, "config: needs either count and time_window, or rules"),
        ("limit-conn", {"conn": 1, "key_type": "header"}, ', but is "header"'),
        ("limit-conn", {"conn": "many"}, "config.conn: must be a whole number above 0, or a text with a variable"),
        (
            "limit-conn",
            {"conn": 0},
            "config.conn: must be a whole number above 0, or a text with a variable: $http_count",
        ),
        ("limit-count", {"count": 1.5, "time_window": 1}, "config.count: must be a whole number"),
        ("limit-count", {"count": 1, "time_window": 0}, "config.time_window: must be a number above 0"),
        ("limit-count", {"count": True, "time_window": 1}, "config.count: must be a whole number"),
        ("limit-count", {"count": 1, "time_window": 1, "policy": "redis"}, "config: policy redis needs redis_host"),
        (
            "limit-count",
            {"count": 1, "time_window": 1, "policy": "disk"},
            "config.policy: must be 'local', 'redis', 'redis-cluster' or 'redis-sentinel', but is \"disk\"",
        ),
        ("csrf", {"key": "k", "expires": -1}, "config.expires: must be greater than or equal to 0, but is -1"),
        ("csrf", {"key": "k", "expires": "long"}, "config.expires: must be a whole number, but is a text"),
        ("uri-blocker", {"block_rules": "x"}, "config.block_rules: must be a list, but is a text"),
        ("uri-blocker", {"block_rules": [1]}, "config.block_rules.0: must be a text, but is 1"),
        ("proxy-cache", {"cache_control": "maybe"}, "config.cache_control: must be true or false, but is a text"),
        (
            "proxy-cache",
            {"cache_method": ["PUT"]},
            "config.cache_method.0: must be 'GET', 'POST' or 'HEAD', but is \"PUT\"",
        ),
        ("request-validation", {"body_schema": None, "header_schema": []}, "must be an object, but is a list"),
        ("http-logger", {"uri": "x"}, "config.uri: 'x' is not a URL as http://service.namespace:8080/path"),
        ("tcp-logger", {"host": "a", "port": 70000}, "config.port: must be less than or equal to 65535, but is 70000"),
        ("referer-restriction", {"whitelist": ["http://a"]}, "'http://a' is no host as example.com or *.example.com"),
        (
            "workflow",
            {"rules": [{"actions": [["limit-req", {}]]}]},
            "config.rules.0.actions.0: must be one of 'return', 'limit-count', 'limit-conn', but is \"limit-req\"",
        ),
        ("opentelemetry", {"sampler": {"name": "never"}}, "config.sampler.name: must be 'always_on', 'always_off'"),
        ("cors", {"max_agee": 1}, "config.max_agee: there is no such field; the nearest is max_age"),
        ("ip-restriction", {"whitelist": ["10.0.0.0/33"]}, "is neither an address nor a network as 10.0.0.0/8"),
        ("redirect", {"regex_uri": ["(", "/"]}, "config.regex_uri.0: '(' is no RE2 pattern"),
        ("proxy-rewrite", {"headers": {"set": {"a b": "c"}}}, "'a b' is not the name of a header"),
        ("forward-auth", {"uri": "auth:9000"}, "'auth:9000' is not a URL as http://service.namespace:8080/path"),
        ("fault-injection", {"abort": {"http_status": 500, "vars": [["a", "??", 1]]}}, "there is no operator '??'"),
        ("error-page", {"uri": "http://a", "statuses": ["40x"]}, "a status is a number from 200 to 599"),
        ("gzip", {"comp_level": 10}, "config.comp_level: must be less than or equal to 9, but is 10"),
        ("basic-auth", {"users": [{"username": "u", "hash": "$5$x"}]}, "user u: this kind of hash is not supported"),
        ("basic-auth", {"htpasswd": "u:{SSHA}AAAA"}, "user u: this SHA hash is not whole"),
        ("basic-auth", {"htpasswd": "u:$2y$05$short"}, "user u: this bcrypt hash is not whole"),
        ("basic-auth", {"htpasswd": "nothing"}, "a line of htpasswd is not `name:hash`"),
    ],
)
def test_a_configuration_that_a_plugin_does_not_take_is_refused_with_field_and_remedy(
    name: str, config: dict[str, object], told: str
) -> None:
    fault = fault_of(name, config)
    assert str(fault).startswith(f"plugin {name}, config")
    assert told in str(fault)


def test_a_plugin_that_apisix_alone_has_is_refused_with_what_does_instead() -> None:
    assert str(fault_of("zipkin")) == "plugin zipkin: there is no plugin of this name; traces are sent by opentelemetry"


def test_no_plugin_that_there_is_is_said_to_be_elsewhere() -> None:
    assert not ELSEWHERE.keys() & CONFIGS.keys()


def test_an_unknown_plugin_is_refused_with_one_like_it() -> None:
    assert str(fault_of("limit-reqs")) == (
        "plugin limit-reqs: there is no plugin of this name; the nearest is limit-req or limit-conn"
    )


def test_a_third_party_plugin_is_known_by_its_name_alone() -> None:
    use = PluginUse(name="maintenance", config={"anything": 1})
    check_use(use, {"maintenance"})
    with pytest.raises(PluginFault, match="is named by the translator's setting plugin_names"):
        check_use(use)


def test_what_is_sealed_is_there_and_not_looked_at() -> None:
    check_use(PluginUse(name="basic-auth", secrets={"htpasswd": SEALED}))
    check_use(PluginUse(name="basic-auth", config={"users": [{"username": "u"}]}, secrets={"users.0.hash": SEALED}))
    check_use(PluginUse(name="proxy-rewrite", secrets={"headers.set.Authorization": SEALED}))


def test_a_secret_needs_a_place_in_the_configuration() -> None:
    fault = fault_of("basic-auth", {"users": []}, secrets={"users.0.password": SEALED})
    assert (fault.field, fault.fault) == ("secrets.users.0.password", "there is no such place in the configuration")


@pytest.mark.parametrize(
    ("name", "config"),
    [
        ("basic-auth", {"users": [{"username": "u", "password": ["hunter2"]}]}),
        ("basic-auth", {"users": [{"username": "u", "pass_word": "hunter2"}]}),
        ("basic-auth", {"htpasswd": "u:hunter2"}),
        ("proxy-rewrite", {"headers": {"set": {"Authorization": "Bearer\nhunter2"}}}),
        ("limit-req", {"rate": "hunter2", "burst": 1}),
        ("cors", "hunter2"),
    ],
)
def test_what_may_be_a_secret_is_not_told(name: str, config: object) -> None:
    use = PluginUse.model_construct(name=name, config=config, secrets={}, order=None)
    with pytest.raises(PluginFault) as caught:
        check_use(use)
    assert "hunter2" not in str(caught.value)


def test_a_file_of_htpasswd_may_have_comments_and_empty_lines() -> None:
    kept = bcrypt.hashpw(b"secret", bcrypt.gensalt(4)).decode()
    check_use(PluginUse(name="basic-auth", config={"htpasswd": f"# people\n\n jack:{kept}\nann:$apr1$s$x\n"}))


@pytest.mark.parametrize(
    ("name", "config", "told"),
    [
        ("echo", {"body": "a" * 131072}, "config: must have at most 131072 bytes as JSON, but has 131084"),
        (
            "uri-blocker",
            {"block_rules": [f"^/{number}" for number in range(1000)]},
            r"'\^/\d+' is one pattern too many: all together have 40000 instructions at most",
        ),
        (
            "workflow",
            {
                "rules": [
                    {"case": [["uri", "~~", f"[a-z]{{900}}{number}"]], "actions": [["return", {"code": 403}]]}
                    for number in range(50)
                ]
            },
            r"config.rules.\d+.case: '\[a-z\]\{900\}\d+' is one pattern too many",
        ),
        (
            "cors",
            {"_meta": {"filter": [["uri", "~~", "a"]] * 1000}},
            "config._meta.filter: 'a' is one pattern too many",
        ),
        ("degraphql", {"query": "{" + "a " * 1500 + "}"}, "config: query is no GraphQL: .* more than 1500 tokens"),
        (
            "body-transformer",
            {"request": {"template": "{{a}}" * 2000}},
            "config.request: template: a template has 6000 names, operators and texts at most, this one 6001",
        ),
        (
            "request-validation",
            {"body_schema": {"properties": {f"a{number}": {"pattern": "a"} for number in range(101)}}},
            "config.body_schema: has more than 100 patterns",
        ),
        (
            "request-validation",
            {"body_schema": {"patternProperties": {f"a{number}": {} for number in range(101)}}},
            "config.body_schema: has more than 100 patterns",
        ),
        ("request-validation", {"body_schema": {"pattern": r"(\w{50}){50}"}}, "config.body_schema: is no JSON Schema"),
        (
            "multi-auth",
            {"auth_plugins": [{"key-auth": {}}] * 17},
            "config.auth_plugins: must have at most 16 items, not",
        ),
        (
            "limit-count",
            {"rules": [{"count": 1, "time_window": 1, "key": "$a"}] * 101},
            "config.rules: must have at most 100 items, not 101",
        ),
        ("limit-count", {"count": "$a" * 600, "time_window": 1}, "config.count: must be a whole number above 0, or a"),
    ],
)
def test_what_would_hold_up_a_gateway_that_reads_it_is_refused(name: str, config: dict[str, object], told: str) -> None:
    assert re.search(told, str(fault_of(name, config)))


@pytest.mark.parametrize(
    "text",
    [
        *("10.0.0.1", "10.1.2.3/8", "10.0.0.0/255.0.0.0", "0.0.0.0/0", "::1", "2001:db8::/32", "::ffff:10.0.0.1/128"),
        *("fe80::1%1", "::/0", "10.0.0.0/08"),
    ],
)
def test_a_network_is_read_as_the_standard_library_does(text: str) -> None:
    network = ip_network(text, strict=False)
    shift = network.max_prefixlen - network.prefixlen
    assert read_network(text) == (network.version, shift, int(network.network_address) >> shift)


@pytest.mark.parametrize(
    "text", ["", "a", "10.0.0", "10.0.0.1/33", "010.0.0.1", "10.0.0.1/", "::1/129", "1::2::3", "\0"]
)
def test_what_is_no_network_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is neither an address nor a network"):
        check_network(text)
