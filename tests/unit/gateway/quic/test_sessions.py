"""Tickets of QUIC: who can read them, and for how long."""

from pathlib import Path

import pytest
from qh3.tls import CipherSuite

from headgate.gateway.quic.sessions import LIFETIME_S, Sessions
from headgate.gateway.tls.tickets import PERIOD_S, RatchetMemory, SecretFile, TicketKeys

SUITE, SECRET = CipherSuite.AES_256_GCM_SHA384, bytes(range(48))


class Clock:
    now = 5.0 * PERIOD_S + 100

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def sessions(clock: Clock) -> Sessions:
    return Sessions(TicketKeys(RatchetMemory(), clock), b"scope", "a.example")


def test_what_is_sealed_is_read(sessions: Sessions) -> None:
    opened = sessions.open(sessions.seal(SUITE, SECRET))
    assert opened is not None
    assert (opened.cipher_suite, opened.resumption_secret) == (SUITE, SECRET)
    assert opened.is_valid
    assert opened.max_early_data_size is None


def test_every_ticket_differs_and_none_shows_the_secret(sessions: Sessions) -> None:
    one, two = sessions.seal(SUITE, SECRET), sessions.seal(SUITE, SECRET)
    assert one[12:] != two[12:]
    assert SECRET[:8] not in one


@pytest.mark.parametrize(("age_s", "is_read"), [(-61, False), (-59, True), (LIFETIME_S, True), (LIFETIME_S + 1, False)])
def test_a_ticket_lives_for_two_hours(sessions: Sessions, clock: Clock, age_s: int, is_read: bool) -> None:
    ticket = sessions.seal(SUITE, SECRET)
    clock.now += age_s
    assert (sessions.open(ticket) is not None) is is_read


def test_a_ticket_ends_with_its_period(sessions: Sessions, clock: Clock) -> None:
    clock.now = 6.0 * PERIOD_S - 1
    ticket = sessions.seal(SUITE, SECRET)
    assert sessions.open(ticket) is not None
    clock.now += 2
    assert sessions.open(ticket) is None


def test_replicas_with_one_file_read_each_others_tickets(tmp_path: Path, clock: Clock) -> None:
    file = tmp_path / "tickets"
    file.write_text("s" * 64)
    one, two = (Sessions(TicketKeys(SecretFile(file), clock), b"scope", "a.example") for _ in range(2))
    assert two.open(one.seal(SUITE, SECRET)) is not None


@pytest.mark.parametrize(("scope", "name"), [(b"other", "a.example"), (b"scope", "b.example"), (b"scope", "")])
def test_a_ticket_is_for_one_scope_and_one_name(clock: Clock, scope: bytes, name: str) -> None:
    keys = TicketKeys(RatchetMemory(), clock)
    ticket = Sessions(keys, b"scope", "a.example").seal(SUITE, SECRET)
    assert Sessions(keys, scope, name).open(ticket) is None


def test_a_changed_ticket_is_none(sessions: Sessions) -> None:
    ticket = sessions.seal(SUITE, SECRET)
    for at in range(len(ticket)):
        assert sessions.open(ticket[:at] + bytes([ticket[at] ^ 1]) + ticket[at + 1 :]) is None
        assert sessions.open(ticket[:at]) is None
