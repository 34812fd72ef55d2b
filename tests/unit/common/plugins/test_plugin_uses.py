"""Uses of plugins that are made of typed configurations."""

import json

import pytest
from pydantic import ValidationError

from headgate.common.plugins.catalogue import CONFIGS
from headgate.common.plugins.checking import MAX_CONFIG, check_size, check_use, faults_of
from headgate.common.plugins.config import PluginConfig
from headgate.common.plugins.errors import PluginFault
from headgate.common.plugins.expressions import Comparison, Joined, parse_expressions, write_comparison
from headgate.common.plugins.security.cors import CorsConfig
from headgate.common.plugins.security.csrf import CsrfConfig
from headgate.common.plugins.traffic.proxy_rewrite import ProxyRewriteConfig
from headgate.common.plugins.transformation.fault_injection import Abort, FaultInjectionConfig
from headgate.common.plugins.transformation.response_rewrite import AnswerHeaderChanges, ResponseRewriteConfig
from headgate.common.table import PluginUse

NOT_PUT = Comparison("request_method", "in", ("PUT",), is_turned=True)


def test_a_use_has_the_name_of_the_plugin_and_what_was_given() -> None:
    use = PluginUse.of(CorsConfig(allow_origins="https://a.example", max_age=5))
    assert use == PluginUse(name="cors", config={"allow_origins": "https://a.example", "max_age": 5})


def test_what_was_not_given_is_not_written() -> None:
    assert PluginUse.of(CorsConfig()) == PluginUse(name="cors")


def test_every_plugin_of_the_catalogue_is_named_at_its_model() -> None:
    assert all(model.plugin == name != "" for name, model in CONFIGS.items())
    assert len(CONFIGS) > 50


def test_a_part_of_a_configuration_has_no_name() -> None:
    assert Abort.plugin == PluginConfig.plugin == ""


@pytest.mark.parametrize(
    "config",
    [
        ResponseRewriteConfig(headers=AnswerHeaderChanges(add=(("X-A", "1"),), set={"X-B": "2"}, remove=("X-C",))),
        FaultInjectionConfig(abort=Abort(http_status=405, vars=([write_comparison(NOT_PUT)],))),
        ProxyRewriteConfig(regex_uri=("/a(.*)", "/$1")),
        CsrfConfig.model_validate({"key": "k"}),
    ],
    ids=lambda config: config.plugin,
)
def test_gateways_read_what_was_said(config: PluginConfig) -> None:
    use = PluginUse.model_validate_json(PluginUse.of(config).model_dump_json())
    check_use(use)
    assert type(config).model_validate(use.config) == config


def test_alternatives_are_written_as_they_were_given() -> None:
    use = PluginUse.of(FaultInjectionConfig(abort=Abort(http_status=405, vars=([write_comparison(NOT_PUT)],))))
    assert use.config == {"abort": {"http_status": 405, "vars": [[["request_method", "!", "in", ["PUT"]]]]}}


@pytest.mark.parametrize(
    "comparison",
    [
        NOT_PUT,
        Comparison("arg_a", "==", "1", is_turned=False),
        Comparison("arg_a", ">", 18.0, is_turned=True),
        Comparison("remote_addr", "ipmatch", ("10.0.0.0/8",), is_turned=False),
    ],
)
def test_a_comparison_is_read_as_it_was_written(comparison: Comparison) -> None:
    assert parse_expressions((write_comparison(comparison),)) == Joined((comparison,), needs_all=True, is_turned=False)


def test_only_the_table_sees_secrets() -> None:
    config = CsrfConfig.model_validate({"key": "hush"})
    assert PluginUse.of(config).config == {"key": "hush"}
    assert json.loads(config.model_dump_json(exclude_unset=True)) == {"key": "***"}
    assert "hush" not in f"{config!r} {config.model_dump()}"


def test_a_value_that_is_not_taken_is_a_fault_of_the_plugin() -> None:
    with pytest.raises(PluginFault, match="cors") as caught, faults_of(CorsConfig):
        CorsConfig(preflight_status=404)
    assert (caught.value.field, caught.value.fault) == (
        "config.preflight_status",
        "must be less than or equal to 299, but is 404",
    )


def test_all_patterns_of_a_configuration_are_bounded_together() -> None:
    pattern = "(a|b|c|d){50}"
    with pytest.raises(PluginFault, match="one pattern too many"), faults_of(CorsConfig):
        CorsConfig(allow_origins_by_regex=tuple(f"{pattern}{number}" for number in range(1_000)))


def test_a_configuration_that_is_too_large_is_refused() -> None:
    use = PluginUse.of(CorsConfig(allow_headers="a" * MAX_CONFIG))
    with pytest.raises(PluginFault, match="must have at most"):
        check_size(use)


def test_configurations_are_checked_when_they_are_made() -> None:
    with pytest.raises(ValidationError):
        CorsConfig.model_validate({"origins": "*"})


def test_several_values_of_a_header_are_written_as_a_list() -> None:
    config = ProxyRewriteConfig.model_validate({"headers": {"add": {"X-A": ["1", "2"], "X-B": "3"}}})
    assert PluginUse.of(config).config == {"headers": {"add": {"X-A": ["1", "2"], "X-B": "3"}}}
