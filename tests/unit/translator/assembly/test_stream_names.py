"""Which hosts a server name of a stream is about."""

import pytest

from headgate.common.resources import ObjectRef
from headgate.common.table import Provenance, StreamRoute, WeightedUpstream
from headgate.translator.assembly.streams import are_named, hosts_taken_by
from headgate.translator.fragments.fragment import Fragment, Identity, StreamClaim

HOSTS = ("a.foo.com", "b.foo.com", "foo.com", "*.bar.com", "~^x", "*")


@pytest.mark.parametrize(
    ("name", "taken"),
    [
        ("a.foo.com", ["a.foo.com"]),
        ("other.com", ["other.com"]),
        ("*.foo.com", ["a.foo.com", "b.foo.com"]),
        ("**.com", ["*.bar.com", "a.foo.com", "b.foo.com", "foo.com"]),
        (r"~^[ab]\.foo", ["*", "*.bar.com", "a.foo.com", "b.foo.com", "~^x"]),
        ("~(", []),
    ],
)
def test_a_server_name_takes_hosts_and_a_pattern_what_it_may(name: str, taken: list[str]) -> None:
    assert list(hosts_taken_by(name, HOSTS)) == taken


@pytest.mark.parametrize(
    ("name", "host", "expected"),
    [
        ("a.foo.com", "a.foo.com", True),
        ("a.foo.com", "b.foo.com", False),
        ("*.foo.com", "b.foo.com", True),
        ("**.foo.com", "c.b.foo.com", True),
        ("**.foo.com", "foo.com", False),
        ("~.", "any.com", True),
    ],
)
def test_a_host_is_named_by_the_streams_that_may_take_it(name: str, host: str, expected: bool) -> None:
    origin = Provenance(cluster="a", kind="Ingress", namespace="default", name="db")
    route = StreamRoute(
        key="db",
        protocol="tls",
        port=0,
        server_names=(name,),
        backends=(WeightedUpstream(upstream="up"),),
        provenance=origin,
    )
    identity = Identity(ObjectRef("a", "", "services", "default", "db"), "v1", "Service", "u")
    user = Fragment(identity, streams=(StreamClaim(route, "spec"),))
    assert are_named((host,), (user,)) is expected
    assert not are_named((), (user,))
