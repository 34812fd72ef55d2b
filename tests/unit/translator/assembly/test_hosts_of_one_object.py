"""A host of which one object claims one route is merged on a short way, to the same as on the long one."""

from dataclasses import replace
from typing import Any

import pytest

from headgate.common.resources import INGRESS, ObjectRef
from headgate.common.table import Canary, PathMatch, PathType, PluginUse, Provenance, Route, TlsPolicy
from headgate.translator.assembly.conflicts import Elsewhere, MergedHost, merge_host
from headgate.translator.fragments.fragment import CanaryClaim, Fragment, Identity, RouteClaim, TlsClaim
from headgate.translator.manifests.patches import OVER_TLS

HOST = "a.example"
REF = ObjectRef("a", INGRESS.group, INGRESS.resource, "default", "web")
FROM = Provenance(cluster="a", kind="Ingress", namespace="default", name="web", rule="spec")
PATH = PathMatch(type=PathType.PREFIX, value="/")
ROUTE = Route(name="web", path=PATH, provenance=FROM)
USE = PluginUse(name="cors", config={})
CLAIM = RouteClaim(HOST, ROUTE, "path")
ALONE = Fragment(Identity(REF, "v1", "Ingress", "uid"), hosts=(HOST,), routes=(CLAIM,))


def on_the_long_way(fragment: Fragment) -> MergedHost:
    """Merge a host that is on another listener too, of the same object."""
    return merge_host(HOST, [fragment], elsewhere=Elsewhere(users=(fragment,)))


CHANGES: dict[str, dict[str, Any]] = {
    "nothing": {},
    "no hosts": {"hosts": ()},
    "other hosts": {"routes": (CLAIM, CLAIM._replace(host="b.example"))},
    "no route": {"routes": ()},
    "two routes": {"routes": (CLAIM, CLAIM._replace(route=ROUTE.model_copy(update={"name": "second"})))},
    "next host": {"unmatched": "next-host"},
    "wildcard's TLS": {"inherits_tls": True},
    "TLS": {"tls": (TlsClaim(HOST, TlsPolicy(min_version="1.3"), "tls"),)},
    "secured": {"secures_hosts": True, "routes": (CLAIM._replace(when_secured=(USE,)),)},
    "not secured": {"routes": (CLAIM._replace(when_secured=(USE,)),)},
    "alias": {"hosts": (), "routes": (CLAIM._replace(is_alias=True),)},
    "alias of its own": {"routes": (CLAIM._replace(is_alias=True),)},
    "rest": {"routes": (CLAIM._replace(is_rest=True),)},
    "refused": {"routes": (CLAIM._replace(is_refused=True),)},
    "condition": {"routes": (CLAIM._replace(route=ROUTE.model_copy(update={"when": OVER_TLS})),)},
    "plugins": {"routes": (CLAIM._replace(route=ROUTE.model_copy(update={"plugins": (USE,)})),)},
    "canary": {"canaries": (CanaryClaim(HOST, PATH, Canary(upstream="u", share=0.5), "path"),)},
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_both_ways_merge_alike(change: dict[str, Any]) -> None:
    fragment = replace(ALONE, **change)
    assert merge_host(HOST, [fragment]) == on_the_long_way(fragment)


def test_a_large_plugin_of_a_single_route_still_costs_it_its_host() -> None:
    config = {"text": "x" * (5 * 1024 * 1024)}
    large = ROUTE.model_copy(update={"plugins": (PluginUse(name="cors", config=config),)})
    merged = merge_host(HOST, [replace(ALONE, routes=(CLAIM._replace(route=large),))])
    assert merged.routes == ()
    assert [problem.reason for problem in merged.lost[REF]] == ["HostTooLarge"]
