"""Which Gateway has which addresses of a pool: nobody's change when others come or go."""

from hypothesis import given
from hypothesis import strategies as st

from headgate.common.resources import GATEWAY, ObjectRef
from headgate.translator.dialects.gateway_api.gateways.allocation import ANY, Allotment, Claimant, Refused, allot
from headgate.translator.fragments.fragment import Seniority
from headgate.translator.world.address_pool import AddressPool, read_pool

POOL = read_pool(["10.0.0.0/29"])
"""Of six addresses."""


def claimant(name: str, *asked: str, year: int = 2024, held: tuple[str, ...] = (), cluster: str = "a") -> Claimant:
    ref = ObjectRef(cluster, GATEWAY.group, GATEWAY.resource, "default", name)
    return Claimant(Seniority(f"{year}-01-01", "default", name, cluster), ref, asked or (ANY,), held)


def allotted(*claimants: Claimant, pool: AddressPool = POOL) -> dict[str, Allotment]:
    return {ref.name: found for ref, found in allot(pool, claimants).items()}


def addresses(*claimants: Claimant, pool: AddressPool = POOL) -> dict[str, tuple[str, ...]]:
    return {name: found.addresses for name, found in allotted(*claimants, pool=pool).items()}


def test_every_gateway_has_an_address_of_its_own() -> None:
    found = addresses(*(claimant(f"gw{number}") for number in range(6)))
    assert sorted(found.values()) == [(f"10.0.0.{last}",) for last in range(1, 7)]


def test_a_newcomer_moves_no_older_one() -> None:
    older = [claimant(f"gw{number}", year=2000 + number) for number in range(5)]
    before = addresses(*older)
    assert addresses(claimant("a-new", year=2024), *older).items() > before.items()


def test_an_address_that_is_held_is_kept_when_older_gateways_go_and_younger_ones_come() -> None:
    older = [claimant(f"gw{number}", year=2000 + number) for number in range(6)]
    before = addresses(*older)
    held = [each._replace(held=before[each.ref.name]) for each in older]
    after = addresses(*held[3:], claimant("a-new", year=1999), claimant("b-new"))
    assert {name: after[name] for name in ("gw3", "gw4", "gw5")} == {
        name: before[name] for name in ("gw3", "gw4", "gw5")
    }


def test_an_address_of_a_gateway_that_is_gone_is_free_again() -> None:
    pool = read_pool(["10.0.0.1"])
    assert addresses(claimant("old", year=2000), claimant("new"), pool=pool) == {"old": ("10.0.0.1",), "new": ()}
    assert addresses(claimant("new"), pool=pool) == {"new": ("10.0.0.1",)}


def test_a_pool_that_is_used_up_is_said_to_the_youngest() -> None:
    pool = read_pool(["10.0.0.1"])
    found = allotted(claimant("old", year=2000), claimant("new"), pool=pool)
    assert found["new"] == Allotment((), (Refused(0, ANY, "all addresses of the pool are taken: 10.0.0.1"),))


def test_an_address_that_is_named_is_had() -> None:
    assert addresses(claimant("gw", "10.0.0.5"))["gw"] == ("10.0.0.5",)


def test_an_address_outside_of_the_pool_is_refused_and_the_others_are_had() -> None:
    found = allotted(claimant("gw", "192.0.2.1", "10.0.0.5"))["gw"]
    assert found.addresses == ("10.0.0.5",)
    why = "is none of the addresses that Gateways may have: 10.0.0.0/29"
    assert found.refused == (Refused(0, "192.0.2.1", why),)


def test_of_two_gateways_that_name_an_address_the_older_has_it() -> None:
    found = allotted(claimant("a", "10.0.0.5"), claimant("z", "10.0.0.5", year=2000))
    assert (found["z"].addresses, found["a"].addresses) == (("10.0.0.5",), ())
    assert found["a"].refused == (Refused(0, "10.0.0.5", "is an address of Gateway default/z"),)


def test_who_names_the_address_that_a_younger_one_holds_does_not_get_it() -> None:
    found = addresses(claimant("old", "10.0.0.5", year=2000), claimant("young", held=("10.0.0.5",)))
    assert found == {"old": (), "young": ("10.0.0.5",)}


def test_who_names_another_address_than_it_holds_moves() -> None:
    assert addresses(claimant("gw", "10.0.0.5", held=("10.0.0.2",)))["gw"] == ("10.0.0.5",)


def test_who_names_an_address_no_more_keeps_it() -> None:
    assert addresses(claimant("gw", held=("10.0.0.5",)))["gw"] == ("10.0.0.5",)


def test_of_two_that_hold_an_address_the_older_keeps_it() -> None:
    found = addresses(claimant("a", held=("10.0.0.5",)), claimant("z", year=2000, held=("10.0.0.5",)))
    assert found["z"] == ("10.0.0.5",)
    assert found["a"] not in ((), ("10.0.0.5",))


def test_an_address_of_an_earlier_pool_is_given_up() -> None:
    (found,) = addresses(claimant("gw", held=("192.0.2.1",)))["gw"]
    assert found in POOL


def test_several_addresses_are_had_in_the_order_of_the_list() -> None:
    pool = read_pool(["10.0.0.0/29", "fd00::7"])
    found = addresses(claimant("gw", "fd00::7", ANY, held=("10.0.0.3", "fd00::7")), pool=pool)
    assert found["gw"] == ("fd00::7", "10.0.0.3")


def test_an_address_that_is_left_open_is_none_that_the_gateway_names_itself() -> None:
    for last in range(1, 7):
        named = f"10.0.0.{last}"
        found = allotted(claimant("gw", ANY, named))["gw"]
        assert (found.addresses[1:], found.refused) == ((named,), ())


def test_namesakes_of_several_clusters_have_addresses_of_their_own() -> None:
    found = allot(POOL, [claimant("gw"), claimant("gw", cluster="b")])
    assert len({each.addresses for each in found.values()}) == 2


_CLAIMANTS = st.lists(
    st.builds(
        lambda name, year, asked, held: claimant(f"gw{name}", *asked, year=2000 + year, held=held),
        st.integers(0, 20),
        st.integers(0, 3),
        st.lists(st.sampled_from([ANY, *(f"10.0.0.{last}" for last in range(8))]), max_size=2),
        st.lists(st.sampled_from([f"10.0.0.{last}" for last in range(8)]), max_size=2).map(tuple),
    ),
    unique_by=lambda one: one.ref,
    max_size=9,
)


@given(_CLAIMANTS)
def test_no_address_is_had_twice_and_all_of_them_stay_once_they_are_held(claimants: list[Claimant]) -> None:
    first = allot(POOL, claimants)
    had = [address for found in first.values() for address in found.addresses]
    assert len(had) == len(set(had))
    assert all(address in POOL for address in had)
    again = [each._replace(held=first[each.ref].addresses) for each in claimants]
    assert {ref: set(found.addresses) for ref, found in allot(POOL, again).items()} == {
        ref: set(found.addresses) for ref, found in first.items()
    }
    for left_out in range(len(again)):
        fewer = [each for each in again if each is not again[left_out]]
        for ref, found in allot(POOL, fewer).items():
            assert set(found.addresses) >= set(first[ref].addresses)
