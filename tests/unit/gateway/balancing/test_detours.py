"""Sessions with pods that only the gateways of their own cluster reach."""

from typing import Any

from fakes.gateway.balanced import World
from headgate.common.table import Endpoint
from headgate.gateway.balancing.levels import Place
from headgate.gateway.balancing.upstream import UpstreamBalancer

POD = "10.0.0.5"
"""In both clusters: their networks know nothing of each other."""
GATEWAYS = "192.0.2.1", "192.0.2.2"


def pod(cluster: str, address: str = POD) -> Endpoint:
    return Endpoint(address=address, port=8080, cluster=cluster, is_local=True)


def hop(cluster: str, address: str = GATEWAYS[0], **state: Any) -> Endpoint:
    return Endpoint(address=address, port=80, cluster=cluster, hop="http", **state)


def seen_from(cluster: str, *endpoints: Endpoint, previous: UpstreamBalancer | None = None) -> UpstreamBalancer:
    return World(place=Place(cluster=cluster)).balancer(*endpoints, previous=previous)


def session_at(cluster: str) -> bytes:
    """What a gateway of a cluster calls its own pod."""
    balancer = seen_from(cluster, pod(cluster))
    token = balancer.token_of(balancer.slots[0].open_pool())
    assert token
    return token


def resumed(balancer: UpstreamBalancer, session: bytes, *, persists: bool = False) -> str | None:
    slot = balancer.resume(session, persists=persists)
    return slot.key[0] if slot is not None else None


def test_pods_of_two_clusters_with_one_address_have_sessions_of_their_own() -> None:
    east, west = session_at("east"), session_at("west")
    assert east != west
    balancer = seen_from("east", pod("east"), pod("west"), hop("west"))
    assert resumed(balancer, east) == POD
    assert resumed(balancer, west) == GATEWAYS[0]


def test_a_drained_cluster_finishes_its_sessions_behind_its_gateways() -> None:
    draining = hop("west", ready=False, serving=True, terminating=True)
    assert resumed(seen_from("east", pod("east"), pod("west"), draining), session_at("west")) == GATEWAYS[0]


def test_a_session_behind_gateways_that_have_nobody_is_given_up_unless_it_persists() -> None:
    balancer = seen_from("east", pod("east"), pod("west"), hop("west", ready=False, serving=False))
    assert resumed(balancer, session_at("west")) is None
    assert resumed(balancer, session_at("west"), persists=True) == GATEWAYS[0]


def test_another_gateway_of_the_cluster_takes_the_session_when_the_first_is_out() -> None:
    balancer = seen_from("east", pod("east"), pod("west"), *(hop("west", address) for address in GATEWAYS))
    first = resumed(balancer, session_at("west"))
    next(slot for slot in balancer.slots if slot.key[0] == first).mark(is_healthy=False)
    assert resumed(balancer, session_at("west")) == next(address for address in GATEWAYS if address != first)


def test_a_pod_that_is_not_reached_through_gateways_any_more_goes_by_its_plain_name() -> None:
    world = World(place=Place(cluster="east"))
    local = world.balancer(pod("east"))
    assert local.token_of(local.slots[0].open_pool())
    plain = Endpoint(address=POD, port=8080, cluster="east")
    after = world.balancer(plain, previous=local)
    fresh = World(place=Place(cluster="east")).balancer(plain)
    assert after.token_of(after.slots[0].open_pool()) == fresh.token_of(fresh.slots[0].open_pool())
