"""Counts of what is under way, in all workers together."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fakes.gateway.workers import Workers, workers
from headgate.common.table import CircuitBreaker
from headgate.gateway.counting.layout import SharedCounts
from headgate.gateway.counting.load import SharedLoad
from headgate.gateway.counting.peers import Peers
from headgate.gateway.counting.tally import Tally
from headgate.gateway.health.circuit import Circuit
from headgate.gateway.proxy.connection_limits import ConnectionLimits
from headgate.gateway.proxy.peer import Peer

BOUND = 5
ENTERING = """
import sys, time
from headgate.gateway.counting.peers import Peers
from headgate.gateway.counting.tally import Tally
descriptor, workers, index, bound, until = (int(text) for text in sys.argv[1:])
tally = Tally(Peers(descriptor, workers, index), "it")
held = most = entered = 0
while time.monotonic() * 1000 < until:
    count = tally.enter("key")
    if count > bound:
        tally.leave("key")
        while held:
            tally.leave("key")
            held -= 1
    else:
        held += 1
        entered += 1
        most = max(most, count)
print(most, entered, flush=True)
time.sleep(60)
"""


def tallies(sharing: Workers) -> list[Tally]:
    return [Tally(peers, "it") for peers in sharing.peers]


def test_a_tally_alone_counts_by_key() -> None:
    tally = Tally()
    assert [tally.enter("a"), tally.enter("a"), tally.enter("b")] == [1, 2, 1]
    tally.leave("a")
    assert (tally.count("a"), tally.count("b"), tally.count("c")) == (1, 1, 0)
    tally.leave("a")
    tally.leave("b")
    assert len(tally) == 0


def test_workers_count_together() -> None:
    with workers(3) as sharing:
        one, two, three = tallies(sharing)
        assert [one.enter("a"), two.enter("a"), two.enter("a"), three.enter("b")] == [1, 2, 3, 1]
        two.leave("a")
        assert [tally.count("a") for tally in (one, two, three)] == [2, 2, 2]


def test_tallies_of_other_names_count_apart() -> None:
    with workers(2) as sharing:
        Tally(sharing.peers[0], "one").enter("a")
        assert Tally(sharing.peers[1], "two").count("a") == 0


def test_what_a_worker_had_is_given_back_when_it_has_ended() -> None:
    with workers(2) as sharing:
        one, two = tallies(sharing)
        for _ in range(3):
            one.enter("a")
        sharing.counts.forget(0)
        assert two.enter("a") == 1


@settings(max_examples=50, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 2), st.booleans()), max_size=80))
def test_the_bound_is_kept_and_every_place_may_be_had_again(steps: list[tuple[int, bool]]) -> None:
    with workers(3) as sharing:
        together, held = tallies(sharing), [0, 0, 0]
        for worker, enters in steps:
            if enters:
                if together[worker].enter("a") > BOUND:
                    together[worker].leave("a")
                    assert sum(held) == BOUND
                else:
                    held[worker] += 1
            elif held[worker]:
                together[worker].leave("a")
                held[worker] -= 1
            assert sum(held) <= BOUND
            assert {tally.count("a") for tally in together} == {sum(held)}


def test_processes_that_enter_at_once_never_exceed_the_bound_and_a_killed_one_gives_back(tmp_path: Path) -> None:
    with SharedCounts(4) as counts:
        until = str(int(time.monotonic() * 1000) + 2500)
        running = [
            subprocess.Popen(
                [sys.executable, "-c", ENTERING, str(counts.descriptor), "4", str(index), str(BOUND), until],
                pass_fds=(counts.descriptor,),
                stdout=subprocess.PIPE,
                text=True,
            )
            for index in range(3)
        ]
        try:
            watching = Tally(Peers(counts.descriptor, 4, 3), "it")
            told = [process.stdout.readline().split() for process in running if process.stdout is not None]
            assert all(int(most) <= BOUND for most, _ in told)
            assert all(int(entered) > 100 for _, entered in told)
            for index, process in enumerate(running):
                os.kill(process.pid, signal.SIGKILL)
                process.wait()
                counts.forget(index)
            assert watching.count("key") == 0
        finally:
            for process in running:
                process.kill()
                process.wait()
                if process.stdout is not None:
                    process.stdout.close()


def peer(address: bytes) -> Peer:
    return Peer(address, b"http", b"80", None, None)


def test_connections_of_a_client_are_bounded_over_all_workers_and_all_of_one_by_worker() -> None:
    with workers(2) as sharing:
        one, two = (ConnectionLimits(3, 2, Tally(peers, "connections")) for peers in sharing.peers)
        assert [one.enter(peer(b"10.0.0.1")), two.enter(peer(b"10.0.0.1"))] == ["", ""]
        assert [one.enter(peer(b"10.0.0.1")), two.enter(peer(b"10.0.0.1"))] == ["client", "client"]
        assert [one.enter(peer(b"10.0.0.2")), one.enter(peer(b"10.0.0.3")), one.enter(peer(b"10.0.0.4"))] == [
            "",
            "",
            "all",
        ]
        two.leave(peer(b"10.0.0.1"))
        assert two.enter(peer(b"10.0.0.1")) == ""


def circuits(sharing: Workers, **bounds: int) -> list[Circuit]:
    return [Circuit(CircuitBreaker(**bounds), SharedLoad(peers, "up")) for peers in sharing.peers]


def test_requests_to_an_upstream_are_bounded_over_all_workers() -> None:
    with workers(2) as sharing:
        one, two = circuits(sharing, max_requests=2)
        assert [one.begin(), two.begin()] == [None, None]
        assert one.begin() == two.begin() == "2 requests are under way"
        one.end()
        assert two.begin() is None


def test_connections_to_an_upstream_are_bounded_over_all_workers_but_for_the_first_of_each() -> None:
    with workers(3) as sharing:
        one, two, three = circuits(sharing, max_connections=2)
        assert [one.acquire_connection(), one.acquire_connection()] == [True, True]
        assert two.acquire_connection()
        assert not two.acquire_connection()
        assert not one.acquire_connection()
        one.release_connection()
        one.release_connection()
        assert two.acquire_connection()
        assert three.acquire_connection()


def test_beyond_the_bound_a_connection_that_rests_makes_room_if_no_other_is_in_use() -> None:
    class Resting:
        def make_room(self) -> None:
            left.append(self)

    left: list[Resting] = []
    with workers(3) as sharing:
        one, two, three = circuits(sharing, max_connections=1)
        assert one.acquire_connection()
        assert two.acquire_connection()
        assert three.acquire_connection()
        assert not one.acquire_connection()
        one.rest(first := Resting())
        assert one.acquire_connection()
        assert left == [first]
        assert not one.acquire_connection()
        assert one.connections == 1


def test_requests_that_wait_are_bounded_over_all_workers() -> None:
    with workers(2) as sharing:
        one, two = circuits(sharing, max_connections=1, max_pending=1)
        assert one.wait(lambda: None) is None
        resume = lambda: None  # noqa: E731
        assert two.wait(resume) == "1 requests wait for one of 1 connections"
        assert two.pending == 0
        one.wake()
        assert two.wait(resume) is None


@pytest.mark.parametrize("part", ["lift", "part"])
def test_an_upstream_whose_bounds_are_over_counts_for_no_other_worker(part: str) -> None:
    with workers(2) as sharing:
        one, two = circuits(sharing, max_requests=1)
        one.begin()
        getattr(one, part)()
        assert two.begin() is None
        one.end()
        assert two.begin() is not None
