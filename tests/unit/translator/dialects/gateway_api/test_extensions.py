"""Filters of type ExtensionRef: which plugins backends may have."""

from headgate.gateway.plugins.built_in.catalogue import BUILT_IN
from headgate.translator.dialects.gateway_api.routes.extensions import RECOGNISERS


def test_the_plugins_that_backends_cannot_have_are_those_that_gateways_refuse_there() -> None:
    assert {name for name, kind in BUILT_IN.items() if kind.finds_consumer} == RECOGNISERS
