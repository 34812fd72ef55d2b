"""Endpoints of a table, with what gateways say of them."""

from fakes.gateway.table import endpoint, upstream
from fakes.traffic import summary
from headgate.common.table.upstream import Endpoint
from headgate.common.traffic import UnfitEndpoint
from headgate.operations.tables.endpoints import EndpointLine, lines_of


def unfit(name: str, since: float = 5.0, *, until: float = 0.0, of: str = "up") -> UnfitEndpoint:
    return UnfitEndpoint(of, name, "ejected" if until else "unhealthy", since, until, "503")


def test_states_are_those_of_the_table() -> None:
    entries = [
        upstream("b", Endpoint(address="fd00::1", port=80)),
        upstream(
            "a",
            endpoint(1, ready=False, serving=True, terminating=True),
            endpoint(2, ready=False, serving=False),
            endpoint(3),
        ),
    ]
    found = [(line.upstream, line.endpoint, line.state, line.is_fit) for line in lines_of(entries, [])]
    assert found == [
        ("a", "10.0.0.1:80", "draining", False),
        ("a", "10.0.0.2:80", "not ready", False),
        ("a", "10.0.0.3:80", "ready", True),
        ("b", "[fd00::1]:80", "ready", True),
    ]


def test_the_last_that_each_worker_said_counts() -> None:
    told = [
        summary(unfit=(unfit("10.0.0.1:80", since=7.0, until=90.0), unfit("10.0.0.2:80"))),
        summary(unfit=(unfit("10.0.0.1:80", since=5.0, until=80.0),), worker=1),
        summary(unfit=(unfit("10.0.0.1:80", since=7.0, until=90.0),)),
    ]
    one, two = lines_of([upstream("up", endpoint(1), endpoint(2))], told)
    assert one == EndpointLine("up", "10.0.0.1:80", "ejected", 5.0, 90.0, "503", workers=2)
    assert two.is_fit


def test_addresses_that_gateways_resolved_have_lines_of_their_own() -> None:
    told = [summary(unfit=(unfit("10.9.9.9:80"), unfit("10.0.0.1:80", of="gone")))]
    found = [
        (line.endpoint, line.state)
        for line in lines_of([upstream("up", Endpoint(address="app.example", port=80))], told)
    ]
    assert found == [("app.example:80", "ready"), ("10.9.9.9:80", "unhealthy")]
