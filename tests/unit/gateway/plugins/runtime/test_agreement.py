"""What is checked where it was written is what gateways take."""

from typing import Any

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from headgate.common.plugins.catalogue import CONFIGS
from headgate.common.plugins.checking import check_use
from headgate.common.plugins.errors import PluginFault
from headgate.common.table import PluginUse
from headgate.gateway.plugins.built_in.catalogue import BUILT_IN
from headgate.gateway.plugins.interface import PluginServices
from headgate.gateway.plugins.interface.errors import PluginRefused
from unit.gateway.plugins.running import REGISTRY, unsealed


def test_every_built_in_plugin_has_its_configuration_in_the_catalogue() -> None:
    assert {name: kind.Config for name, kind in BUILT_IN.items()} == dict(CONFIGS)


TEXTS = ["", "/", "/a", "(", "$1", "*", "GET", "http://a:1", "up", "a b", "10.0.0.0/8", "{SHA}AAAA", "u:$apr1$a$b"]
WORDS = ["X-A", "Host", "var", "uuid", "1.1", "404", "500-599"]
SCALARS = st.sampled_from([0, 1, 200, 500, -1, 0.5, True, None, *TEXTS, *WORDS])
CONDITIONS = st.sampled_from(
    [["status", "==", 404], ["a", "~~", "("], ["OR", ["a", "in", ["b"]]], ["a", "ipmatch", "x"]]
)
VALUES = (
    SCALARS
    | st.lists(SCALARS, max_size=3)
    | st.lists(CONDITIONS, max_size=2)
    | st.dictionaries(st.sampled_from(["set", "add", "remove", "X-A", "number", "length"]), SCALARS, max_size=2)
)


def config_of(name: str) -> st.SearchStrategy[dict[str, Any]]:
    fields = sorted(CONFIGS[name].model_fields)
    return st.dictionaries(st.sampled_from([*fields, "other"]), VALUES, max_size=5)


@settings(max_examples=400)
@given(st.data(), st.sampled_from(sorted(CONFIGS)))
def test_a_gateway_refuses_what_was_refused_and_takes_what_was_taken(data: st.DataObject, name: str) -> None:
    use = PluginUse(name=name, config=data.draw(config_of(name)))
    # Whether files of policies may be read is a setting of gateways, which the check does not know.
    assume(name != "authz-casbin" or not {"model_path", "policy_path"} <= use.config.keys())
    checked = made = ""
    try:
        check_use(use)
    except PluginFault as fault:
        checked = str(fault)
    try:
        REGISTRY.make(use, PluginServices(), unsealed)
    except PluginRefused as refusal:
        made = str(refusal)
    assert checked == made
