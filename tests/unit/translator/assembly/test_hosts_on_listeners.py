"""A host on several listeners has one owner, and listeners of entry points are there while hosts name them."""

import pytest

from headgate.common.resources import INGRESS, ObjectRef
from headgate.common.snapshot import decode_chunk
from headgate.common.table import HttpsRedirect, Listener, PathMatch, PathType, Provenance, Route
from headgate.translator.assembly.assembly import Assembly
from headgate.translator.assembly.boundaries import Boundaries
from headgate.translator.fragments.fragment import Fragment, Identity, RouteClaim

SAID_BY = Provenance(cluster="", kind="Setting", namespace="", name="entrypoints")
OLD, YOUNG = "2026-01-01T00:00:00Z", "2026-02-01T00:00:00Z"


def listener(key: str, **fields: object) -> Listener:
    return Listener.model_validate({"key": key, "port": 9000, "protocol": "http", "provenance": SAID_BY, **fields})


def claiming(namespace: str, created: str, host: str, path: str = "/") -> Fragment:
    """Return what an object of a namespace contributes that has a path of a host."""
    ref = ObjectRef("a", INGRESS.group, INGRESS.resource, namespace, "web")
    source = Provenance(cluster="a", kind="Ingress", namespace=namespace, name="web", rule="spec")
    route = Route(name=path, path=PathMatch(type=PathType.PREFIX, value=path), provenance=source)
    identity = Identity(ref, "v1", "Ingress", f"uid-{namespace}", created)
    return Fragment(identity, hosts=(host,), routes=(RouteClaim(host, route, "path"),))


def settle(assembly: Assembly, *fragments: Fragment) -> set[str]:
    """Take fragments, and return the listeners of the table."""
    for fragment in fragments:
        assembly.put_fragment(fragment.identity.ref, fragment)
    for _ in assembly.assemble():
        pass
    entries = (entry for chunk in assembly.image.chunks() for entry in decode_chunk(chunk.kind, chunk.content))
    return {entry.key for entry in entries if isinstance(entry, Listener)}


def reasons(assembly: Assembly, fragment: Fragment) -> list[str]:
    return [problem.reason for problem in assembly.lost_by(fragment)]


@pytest.mark.parametrize("hosts", [("a.com", "a.com@api"), ("a.com@api", "a.com"), ("a.com@api", "a.com@other")])
@pytest.mark.parametrize("is_reversed", [False, True])
def test_a_host_is_the_oldest_claimants_on_all_listeners(hosts: tuple[str, str], is_reversed: bool) -> None:
    owner, guest = claiming("one", OLD, hosts[0]), claiming("two", YOUNG, hosts[1])
    assembly = Assembly()
    settle(assembly, *((guest, owner) if is_reversed else (owner, guest)))
    assert (reasons(assembly, owner), reasons(assembly, guest)) == ([], ["HostNotOwned"])
    assembly.put_fragment(owner.identity.ref, None)
    settle(assembly)
    assert reasons(assembly, guest) == []


def test_a_guest_has_the_paths_that_the_owner_leaves_elsewhere() -> None:
    owner, guest = claiming("one", OLD, "a.com", "/shop"), claiming("two", YOUNG, "a.com@api", "/blog")
    assembly = Assembly()
    settle(assembly, owner, guest)
    assert reasons(assembly, guest) == []


def test_hosts_without_owners_are_whose_they_are_on_each_listener() -> None:
    owner, guest = claiming("one", OLD, "a.com"), claiming("two", YOUNG, "a.com@api")
    assembly = Assembly(Boundaries(host_sharing="any"))
    settle(assembly, owner, guest)
    assert reasons(assembly, guest) == []


def test_a_proposal_is_judged_by_the_owner_on_other_listeners() -> None:
    owner, guest = claiming("one", OLD, "a.com"), claiming("two", YOUNG, "a.com@api")
    assembly = Assembly()
    settle(assembly, owner)
    losses = assembly.rehearse(guest.identity.ref, guest)
    assert [problem.reason for problem in assembly.lost_by(guest, losses)] == ["HostNotOwned"]


def test_a_listener_is_in_the_table_while_a_host_names_it_or_it_redirects() -> None:
    lasting = listener("sent", port=9001, https_redirect=HttpsRedirect())
    assembly = Assembly(listeners=[listener("api"), lasting])
    assert settle(assembly) == {"sent"}
    one, two = claiming("one", OLD, "a.com@api"), claiming("two", YOUNG, "b.com@api,sent")
    assert settle(assembly, one, two) == {"api", "sent"}
    for fragment in (one, two):
        assembly.put_fragment(fragment.identity.ref, None)
    assert settle(assembly) == {"sent"}
