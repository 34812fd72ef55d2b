"""MiddlewareTCPs in the routes that use them."""

from typing import Any

import pytest

from fakes.translator.known import Known
from fakes.translator.traefik_streams import Streams, resource, rule, tcp
from headgate.common.resources import ObjectRef
from headgate.common.resources.traefik import MIDDLEWARE_TCP
from headgate.translator.dialects.traefik.streams.middlewares import translate_middleware_tcp


def allowing(*networks: str, name: str = "one", field: str = "ipAllowList") -> Any:
    return resource("MiddlewareTCP", name, **{field: {"sourceRange": list(networks)}})


def using(*names: str, match: str = "HostSNI(`*`)") -> Any:
    return tcp(rule(match, middlewares=[{"name": name} for name in names]), entryPoints=["db"])


@pytest.mark.parametrize("field", ["ipAllowList", "ipWhiteList"])
def test_networks_of_a_middleware_may_connect_alone(field: str) -> None:
    made = Streams(allowing("10.0.0.0/8", "::1", "192.0.2.7", field=field), using("one"))
    assert set(made.route.allowed_networks) == {"10.0.0.0/8", "::1/128", "192.0.2.7/32"}


def test_every_network_is_admitted_by_the_widest_ones() -> None:
    assert Streams(allowing("0.0.0.0/0", "::/0"), using("one")).route.allowed_networks == ()


def test_all_middlewares_have_to_admit_a_client() -> None:
    made = Streams(
        allowing("10.0.0.0/8", "192.168.0.0/16"),
        allowing("10.1.0.0/16", "192.168.1.0/24", "::/0", name="two"),
        using("one", "two"),
    )
    assert made.route.allowed_networks == ("10.1.0.0/16", "192.168.1.0/24")


def test_a_route_whose_middlewares_have_no_network_in_common_lets_no_client_in() -> None:
    made = Streams(allowing("10.0.0.0/8"), allowing("192.0.2.0/24", name="two"), using("one", "two"))
    assert made.said() == [("error", "InvalidValue", "spec.routes[0].middlewares")]
    assert [one.unavailable is not None for one in made.upstreams(made.routes[0])] == [True]


@pytest.mark.parametrize(
    ("spec", "reason"),
    [
        (None, "MiddlewareTCPNotFound"),
        ({}, "Required"),
        ({"inFlightConn": {"amount": 0}}, "InvalidValue"),
        ({"inFlightConn": {"amount": 3}, "ipAllowList": {"sourceRange": ["10.0.0.0/8"]}}, "InvalidValue"),
        ({"ipAllowList": {"sourceRange": []}}, "Required"),
        ({"ipAllowList": {"sourceRange": ["10.0.0.0/8", "here"]}}, "InvalidValue"),
        ({"ipAllowList": 1}, "InvalidValue"),
    ],
)
def test_a_middleware_that_cannot_be_followed_lets_no_client_in(spec: Any, reason: str) -> None:
    there = [] if spec is None else [resource("MiddlewareTCP", **spec)]
    made = Streams(*there, using("one"))
    assert ("error", reason, "spec.routes[0].middlewares[0].name") in made.said()
    (upstream,) = made.upstreams(made.routes[0])
    assert "MiddlewareTCP one: " in (upstream.unavailable or "")


def test_the_least_bound_of_connections_counts() -> None:
    bounds = [resource("MiddlewareTCP", f"m{amount}", inFlightConn={"amount": amount}) for amount in (3, 2, 4)]
    made = Streams(*bounds, allowing("10.0.0.0/8"), using("m3", "one", "m2", "m4"))
    assert (made.route.max_connections_per_client, made.route.allowed_networks) == (2, ("10.0.0.0/8",))


def test_a_field_that_there_is_not_keeps_no_client_out() -> None:
    one = allowing("10.0.0.0/8")
    one["spec"]["other"] = 1
    assert Streams(one, using("one")).routes[0].allowed_networks == ("10.0.0.0/8",)


def test_a_middleware_says_itself_what_is_wrong_with_it() -> None:
    ref = ObjectRef("a", MIDDLEWARE_TCP.group, MIDDLEWARE_TCP.resource, "default", "one")
    wrong = translate_middleware_tcp(ref, allowing("here"), Known())
    assert [one.field for one in wrong.problems] == ["spec.ipAllowList.sourceRange[0]"]
    assert translate_middleware_tcp(ref, allowing("::1"), Known()).problems == ()
