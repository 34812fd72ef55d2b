"""Certificates that come and go one by one: the store is as if it had been given all of them at once."""

import gc
from weakref import ref

from hypothesis import given
from hypothesis import strategies as st

from fakes.gateway.tls_listener import entry
from headgate.common.secret import Secret
from headgate.gateway.tls import CertificateEntry, CertificateStore

NAMES = ("a.com", "b.com", "*.a.com", "A.com.")
KEYS = ("one", "two", "three")
CHANGES = st.lists(
    st.tuples(st.sampled_from(KEYS), st.none() | st.lists(st.sampled_from(NAMES), max_size=3), st.integers(0, 2)),
    max_size=4,
)


def named(key: str, *names: str, version: int = 0) -> CertificateEntry:
    return CertificateEntry(names, "", Secret(b""), f"{version}", key, not_after="2030-01-01T00:00:00+00:00")


def seen(store: CertificateStore) -> tuple[list[CertificateEntry | None], set[str]]:
    """What is presented for each name, None for the fallback, and the keys of all certificates."""
    found = [store.certificate_for(name) for name in ("a.com", "b.com", "x.a.com", "c.com")]
    return [None if entry is store.fallback else entry for entry in found], {key for key, _ in store.not_after()}


@given(st.lists(CHANGES, max_size=4))
def test_changes_one_by_one_equal_all_at_once(revisions: list[list[tuple[str, list[str] | None, int]]]) -> None:
    store, current = CertificateStore(), dict[str, CertificateEntry]()
    for changes in revisions:
        wanted = {key: names and named(key, *names, version=version) for key, names, version in changes}
        arrived = {key: item for key, item in wanted.items() if item}
        gone = wanted.keys() - arrived.keys()
        store.change_certificates(arrived.values(), gone)
        current = {key: item for key, item in current.items() if key not in gone} | arrived
        fresh = CertificateStore()
        fresh.set_certificates(current.values())
        assert seen(store) == seen(fresh)
    store.set_certificates([])
    assert seen(store) == seen(CertificateStore())


def test_of_two_certificates_with_a_name_the_one_with_the_lesser_key_is_used_until_it_goes() -> None:
    store = CertificateStore()
    store.change_certificates([named("two", "a.com")], ())
    store.change_certificates([named("one", "a.com")], ())
    assert store.certificate_for("a.com").key == "one"
    store.change_certificates([], ["one"])
    assert store.certificate_for("a.com").key == "two"
    store.change_certificates([], ["two"])
    assert store.certificate_for("a.com").server_names == ()


def test_what_was_made_of_a_certificate_is_dropped_with_the_last_that_is_equal() -> None:
    store, one = CertificateStore(), entry("a.com", key="one")
    store.change_certificates([one, one._replace(key="two", server_names=("b.com",))], ())
    context = ref(store.choose("a.com").context)
    assert store.choose("b.com").context is context()
    store.change_certificates([], ["one"])
    assert store.choose("b.com").context is context()
    assert store.choose("a.com").certificate.fingerprint != one.fingerprint
    store.change_certificates([], ["two"])
    gc.collect()
    assert context() is None


def test_the_fallback_of_the_table_goes_with_its_certificate() -> None:
    store = CertificateStore(default_key="wild")
    own = store.fallback
    store.change_certificates([entry("a.com", key="wild")], ())
    assert store.fallback.key == "wild"
    store.change_certificates([], ["wild"])
    assert store.fallback is own
