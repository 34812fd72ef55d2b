"""Rounds beside each other."""

from bench.clients.load import LoadResult
from bench.parts.comparison import make_row


def done(requests_per_s: float, busy: float = 1.0) -> LoadResult:
    return LoadResult(requests_per_s, 1, 1, 1, 1, 1, 1, {}, busy, 0.0)


def test_ratios_are_taken_within_a_round():
    rounds = {"nginx": [done(100), done(10), done(100)], "Headgate": [done(50), done(10), done(60)]}
    assert make_row("Headgate", rounds).of_nginx == 0.6


def test_ratios_by_core_divide_by_what_the_proxy_used():
    rounds = {"nginx": [done(100, busy=0.25)], "Headgate": [done(100, busy=0.5)]}
    assert make_row("Headgate", rounds).of_nginx == 1.0
    assert make_row("Headgate", rounds, by_core=True).of_nginx == 0.5


def test_without_the_other_proxy_there_is_no_ratio():
    assert make_row("Headgate", {"Headgate": [done(1)]}).of_envoy is None
