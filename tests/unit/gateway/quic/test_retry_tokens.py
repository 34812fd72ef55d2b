"""Tokens by which clients show that an address is theirs."""

import time

import pytest

from headgate.gateway.quic.tokens import Retried, RetryTokens

CLIENT = ("192.0.2.1", 4433)
ORIGINAL, RETRY = b"original", b"retry id"


def test_a_token_says_what_its_client_was_told() -> None:
    tokens = RetryTokens()
    assert tokens.open(CLIENT, tokens.seal(CLIENT, ORIGINAL, RETRY)) == Retried(ORIGINAL, RETRY)
    assert tokens.open(CLIENT, tokens.seal(CLIENT, b"x" * 20, RETRY)) == Retried(b"x" * 20, RETRY)


@pytest.mark.parametrize("other", [("192.0.2.2", 4433), ("192.0.2.1", 4434)])
def test_a_token_is_nothing_from_another_address(other: tuple[str, int]) -> None:
    tokens = RetryTokens()
    assert tokens.open(other, tokens.seal(CLIENT, ORIGINAL, RETRY)) is None


def test_a_token_of_another_process_is_nothing() -> None:
    assert RetryTokens().open(CLIENT, RetryTokens().seal(CLIENT, ORIGINAL, RETRY)) is None


@pytest.mark.parametrize("change", [lambda token: token[:-1], lambda token: token[:5], lambda token: b"\0" + token[1:]])
def test_a_changed_token_is_nothing(change: object) -> None:
    tokens = RetryTokens()
    assert tokens.open(CLIENT, change(tokens.seal(CLIENT, ORIGINAL, RETRY))) is None  # type: ignore[operator]


def test_a_token_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    tokens, now = RetryTokens(), time.monotonic()
    token = tokens.seal(CLIENT, ORIGINAL, RETRY)
    monkeypatch.setattr(time, "monotonic", lambda: now + 9.0)
    assert tokens.open(CLIENT, token) is not None
    monkeypatch.setattr(time, "monotonic", lambda: now + 11.0)
    assert tokens.open(CLIENT, token) is None
