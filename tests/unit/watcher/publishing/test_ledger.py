"""What should be in the log and what is."""

from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from headgate.common.deltas import Operation
from headgate.common.resources import INGRESS, SERVICE, ObjectRef
from headgate.common.stores import LoggedObject
from headgate.watcher.publishing.ledger import Gone, Ledger, PreparedObject, content_digest

NOW = datetime(2024, 1, 1, tzinfo=UTC)


def ref(name: str) -> ObjectRef:
    return ObjectRef("a", "", "services", "default", name)


def wanted(version: str, uid: str = "u", content: str = "") -> PreparedObject:
    return PreparedObject(uid, version, (content or version).encode(), b"{}", NOW)


def test_content_does_not_depend_on_its_version() -> None:
    one = {"metadata": {"name": "x", "resourceVersion": "1"}, "spec": {}}
    assert content_digest(one) == content_digest({"spec": {}, "metadata": {"resourceVersion": "2", "name": "x"}})
    assert content_digest(one) != content_digest({**one, "spec": {"a": 1}})


def test_an_object_that_came_and_went_unseen_is_nothing_to_publish() -> None:
    ledger = Ledger([SERVICE])
    ledger.want(ref("x"), wanted("1"))
    ledger.drop(ref("x"), "u", Gone("2", NOW))
    assert ledger.delta(ref("x")) is None


def test_a_new_object_of_the_same_name_replaces_a_deletion() -> None:
    ledger = Ledger([SERVICE])
    ledger.load({ref("x"): LoggedObject("u", "1", False, 5)})
    ledger.drop(ref("x"), "u", Gone("2", NOW))
    ledger.want(ref("x"), wanted("3", uid="v"))
    delta = ledger.delta(ref("x"))
    assert delta is not None
    assert (delta.operation, delta.uid, ledger.expected(ref("x"))) == (Operation.APPLY, "v", 5)


def test_what_could_not_be_sent_comes_first_again() -> None:
    ledger = Ledger([SERVICE])
    ledger.want(ref("x"), wanted("1"))
    taken = ledger.take()
    ledger.want(ref("z"), wanted("1"))
    ledger.put_back(taken)
    assert ledger.take() == [ref("x"), ref("z")]


def test_what_was_handed_out_is_pending_until_it_is_settled() -> None:
    ledger = Ledger([SERVICE])
    ledger.want(ref("x"), wanted("1"))
    assert ledger.take() == [ref("x")]
    assert (ledger.pending, ledger.pending_since) == (1, NOW)
    ledger.settle(ref("x"))
    assert (ledger.pending, ledger.pending_since) == (0, None)


def test_a_deletion_that_was_removed_from_the_log_is_no_loss() -> None:
    ledger = Ledger([SERVICE])
    ledger.load({ref("x"): LoggedObject("u", "1", True, 5)})
    assert not ledger.load({})


def test_a_log_that_lost_anything_is_told() -> None:
    ledger = Ledger([SERVICE])
    full = {ref("x"): LoggedObject("u", "1", False, 5)}
    assert not ledger.load(full)
    assert not ledger.load({ref("x"): LoggedObject("u", "2", False, 6)})
    assert ledger.load({ref("x"): LoggedObject("u", "1", False, 1)})
    assert ledger.load({})


def test_a_version_that_differs_in_nothing_is_not_published_again() -> None:
    ledger = Ledger([SERVICE])
    known = LoggedObject("u", "1", False, 5, wanted("1", content="same").logged_digest)
    ledger.load({ref("x"): known})
    ledger.want(ref("x"), wanted("2", content="same"))
    assert ledger.delta(ref("x")) is None
    ledger.want(ref("x"), wanted("3", uid="v", content="same"))
    assert ledger.delta(ref("x")) is not None


def test_yielding_lasts_until_the_next_report() -> None:
    ledger = Ledger([SERVICE])
    ledger.want(ref("x"), wanted("7"))
    delta = ledger.delta(ref("x"))
    assert delta is not None
    ledger.load({ref("x"): LoggedObject("u", "9", False, 5)})
    assert ledger.yield_to_newer(delta)
    assert ledger.delta(ref("x")) is None
    ledger.want(ref("x"), wanted("12"))
    assert ledger.delta(ref("x")) is not None


def test_a_list_of_one_kind_judges_no_other() -> None:
    ledger = Ledger([SERVICE, INGRESS])
    ledger.load({ref("x"): LoggedObject("u", "1", False, 5)})
    ledger.complete(INGRESS, ())
    assert ledger.delta(ref("x")) is None
    ledger.complete(SERVICE, ())
    assert ledger.delta(ref("x")) is not None


_names = st.sampled_from("xyz")
_steps = st.lists(
    st.one_of(
        st.tuples(st.just("want"), _names, st.integers(1, 3)),
        st.tuples(st.just("drop"), _names),
        st.tuples(st.just("complete"), st.frozensets(_names)),
        st.tuples(st.just("send"), st.booleans()),
        st.tuples(st.just("lose")),
    ),
    max_size=30,
)


@given(_steps)
def test_whatever_happens_the_log_ends_as_wanted(steps: list[tuple[object, ...]]) -> None:
    ledger, log, model = Ledger([SERVICE]), dict[ObjectRef, LoggedObject](), dict[str, str]()
    ledger.complete(SERVICE, ())
    for number, step in enumerate([*steps, ("send", True)], start=1):
        match step:
            case ("want", str(name), int(content)):
                now = wanted(f"{number}", content=f"{content}")
                model[name] = now.logged_digest
                ledger.want(ref(name), now)
            case ("drop", str(name)):
                model.pop(name, None)
                ledger.drop(ref(name), "u", Gone(f"{number}", NOW))
            case ("complete", frozenset() as names):
                model = {name: digest for name, digest in model.items() if name in names}
                ledger.complete(SERVICE, {ref(name) for name in names})
            case ("lose",):
                log.clear()
                ledger.load(dict(log))
            case ("send", bool(is_confirmed)):
                _send(ledger, log, number, is_confirmed=is_confirmed)
    assert {one.name: state.digest for one, state in log.items() if not state.is_deleted} == model


def _send(ledger: Ledger, log: dict[ObjectRef, LoggedObject], number: int, *, is_confirmed: bool) -> None:
    taken = ledger.take()
    for one in taken:
        delta = ledger.delta(one)
        if delta is not None:
            is_deleted = delta.operation is Operation.DELETE
            log[one] = LoggedObject(delta.uid, delta.resource_version, is_deleted, number * 100, delta.digest)
            if is_confirmed:
                ledger.confirm(delta, number * 100)
    if not is_confirmed:  # no answer came: the log is read again
        ledger.load(dict(log))
        ledger.put_back(taken)
