"""Of several objects that say something of the gateway's own listeners the oldest counts, and the others hear of it."""

from dataclasses import replace

import pytest

from headgate.common.resources import CONFIG_MAP, ObjectRef
from headgate.common.snapshot import decode_chunk
from headgate.common.table import Listener, Provenance, TlsPolicy, own_listener
from headgate.translator.assembly.assembly import Assembly
from headgate.translator.fragments.fragment import Fragment, Identity

OLD, YOUNG = "2026-01-01T00:00:00Z", "2026-02-01T00:00:00Z"


def saying(cluster: str, created: str, *trusted: str) -> Fragment:
    """Return what the ConfigMap of a cluster says of both own listeners."""
    ref = ObjectRef(cluster, CONFIG_MAP.group, CONFIG_MAP.resource, "ingress-nginx", "options")
    source = Provenance(cluster=cluster, kind="ConfigMap", namespace="ingress-nginx", name="options")
    change = {"trusted_proxies": trusted, "provenance": source}
    listeners = tuple(own_listener(key).model_copy(update=change) for key in ("http", "https"))
    return Fragment(Identity(ref, "v1", "ConfigMap", f"uid-{cluster}", created), own_listeners=listeners)


def settle(assembly: Assembly, *fragments: Fragment) -> dict[str, tuple[str, ...] | None]:
    """Take fragments, and return whom the own listeners believe."""
    for fragment in fragments:
        assembly.put_fragment(fragment.identity.ref, fragment)
    for _ in assembly.assemble():
        pass
    return {entry.key: entry.trusted_proxies for entry in listeners(assembly)}


def listeners(assembly: Assembly) -> list[Listener]:
    """Return those of the table."""
    chunks = assembly.image.chunks()
    entries = [entry for chunk in chunks for entry in decode_chunk(chunk.kind, chunk.content)]
    return [entry for entry in entries if isinstance(entry, Listener)]


@pytest.mark.parametrize("is_reversed", [False, True])
def test_the_oldest_counts_and_the_younger_is_told(is_reversed: bool) -> None:
    old, young = saying("a", OLD, "10.0.0.0/8"), saying("b", YOUNG, "0.0.0.0/0")
    assembly = Assembly()
    found = settle(assembly, *((young, old) if is_reversed else (old, young)))
    assert found == {"http": ("10.0.0.0/8",), "https": ("10.0.0.0/8",)}
    assert list(assembly.lost_by(old)) == []
    first, _ = assembly.lost_by(young)
    assert first.reason == "ListenerConflict"
    assert "ConfigMap ingress-nginx/options" in first.message


def test_the_younger_counts_once_the_oldest_is_gone() -> None:
    old, young = saying("a", OLD, "10.0.0.0/8"), saying("b", YOUNG, "0.0.0.0/0")
    assembly = Assembly()
    settle(assembly, old, young)
    assembly.put_fragment(old.identity.ref, None)
    assert settle(assembly) == {"http": ("0.0.0.0/0",), "https": ("0.0.0.0/0",)}
    assert list(assembly.lost_by(young)) == []
    assembly.put_fragment(young.identity.ref, None)
    assert settle(assembly) == {}


def test_those_who_say_the_same_agree() -> None:
    assembly = Assembly()
    first, second = saying("a", OLD, "10.0.0.0/8"), saying("b", YOUNG, "10.0.0.0/8")
    settle(assembly, first, second)
    assert list(assembly.lost_by(second)) == []


def test_settings_count_before_all_objects_and_stay() -> None:
    said = own_listener("http").model_copy(update={"trusted_proxies": ("192.0.2.0/24",)})
    assembly, old = Assembly(listeners=[said]), saying("a", OLD, "10.0.0.0/8")
    assert settle(assembly, old) == {"http": ("192.0.2.0/24",), "https": ("10.0.0.0/8",)}
    (told,) = assembly.lost_by(old)
    assert (told.reason, "setting entrypoints" in told.message) == ("ListenerConflict", True)
    assembly.put_fragment(old.identity.ref, None)
    assert settle(assembly) == {"http": ("192.0.2.0/24",)}


def test_an_object_says_what_settings_leave_open() -> None:
    said = own_listener("https").model_copy(update={"trusted_proxies": ("192.0.2.0/24",)})
    option, policy = saying("a", OLD), TlsPolicy(min_version="1.3")
    listener = own_listener("https").model_copy(update={"tls": policy})
    assembly = Assembly(listeners=[said])
    settle(assembly, replace(option, own_listeners=(listener,)))
    (entry,) = listeners(assembly)
    assert (entry.trusted_proxies, entry.tls) == (("192.0.2.0/24",), policy)
    assert list(assembly.lost_by(option)) == []
    assembly.put_fragment(option.identity.ref, None)
    assert settle(assembly) == {"https": ("192.0.2.0/24",)}
    assert [each.tls for each in listeners(assembly)] == [None]
