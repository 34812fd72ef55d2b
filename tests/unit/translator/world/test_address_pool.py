"""Pools of addresses: which addresses they have, which one comes first, and what a setting must not say."""

import pytest
from pydantic import ValidationError

from headgate.translator.settings import TranslatorSettings
from headgate.translator.world.address_pool import NO_POOL, read_pool


def test_a_network_has_neither_its_own_address_nor_the_one_for_all() -> None:
    pool = read_pool(["10.0.0.0/30"])
    assert [f"10.0.0.{last}" in pool for last in range(5)] == [False, True, True, False, False]


def test_single_addresses_and_pairs_are_had_whole() -> None:
    pool = read_pool(["10.0.0.7", "10.0.1.0/31", "fd00::7"])
    assert all(address in pool for address in ("10.0.0.7", "10.0.1.0", "10.0.1.1", "fd00::7"))
    assert "10.0.0.8" not in pool


def test_a_network_of_ipv6_has_not_the_address_of_all_routers() -> None:
    pool = read_pool(["fd00::/64"])
    assert "fd00::" not in pool
    assert "fd00::ffff:ffff:ffff:ffff" in pool


def test_text_that_is_no_address_is_in_no_pool() -> None:
    assert "example.com" not in read_pool(["10.0.0.0/24"])
    assert NO_POOL.is_empty
    assert NO_POOL.first_free("seed", ()) is None


def test_the_first_free_address_follows_from_the_seed_and_is_none_that_is_taken() -> None:
    pool, taken = read_pool(["10.0.0.0/29"]), dict[str, None]()
    first = pool.first_free("shop/edge", ())
    assert first == pool.first_free("shop/edge", ())
    while (address := pool.first_free("shop/edge", taken)) is not None:
        assert address in pool
        taken[address] = None
    assert len(taken) == 6


def test_networks_are_used_up_one_after_another() -> None:
    pool = read_pool(["10.0.0.9", "fd00::/64"])
    assert pool.first_free("a", ()) == "10.0.0.9"
    found = pool.first_free("a", ("10.0.0.9",))
    assert found is not None
    assert found.startswith("fd00::")


@pytest.mark.parametrize("written", ["fd00::/8", "10.0.0.0/8"])
def test_a_pool_may_be_of_any_size(written: str) -> None:
    pool = read_pool([written])
    assert pool.first_free("a", ()) in pool


@pytest.mark.parametrize(
    ("written", "why"),
    [
        (["ten"], "'ten' is no network"),
        (["10.0.0.7/24"], "host bits set"),
        (["10.0.0.0/24", "10.0.0.9"], "overlaps 10.0.0.0/24"),
        (["224.0.0.0/24"], "no host can have"),
        (["0.0.0.0/0"], "no host can have"),
        (["fe80::/64"], "no host can have"),
        ([f"10.0.{number}.0/24" for number in range(65)], "65 entries, at most 64"),
    ],
)
def test_a_setting_that_names_no_pool_is_refused_with_what_is_right(written: list[str], why: str) -> None:
    with pytest.raises(ValidationError, match=why) as caught:
        TranslatorSettings(gateway_addresses=written)
    assert caught.value.errors()[0]["loc"] == ("gateway_addresses",)


def test_a_setting_may_be_a_list_with_commas(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADGATE_GATEWAY_ADDRESSES", "10.248.0.0/24,fd00:248::/64")
    pool = TranslatorSettings().translation.gateway_addresses
    assert str(pool) == "10.248.0.0/24, fd00:248::/64"
