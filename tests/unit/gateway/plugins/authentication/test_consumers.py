"""Who is found by what, and who has what several claim."""

import logging

import pytest

from headgate.common.sealing import ClusterValue, Unsealer
from headgate.common.table import Credential, PluginUse
from headgate.gateway.model.steps import finish
from headgate.gateway.plugins.interface.consumers import ConsumerDirectory
from unit.gateway.plugins.people import consumer, directory, group
from unit.gateway.plugins.running import unsealed

KEY = ("key-auth", {"key": "sesame"})


def owner(found, plugin: str = "key-auth", value: bytes = b"sesame") -> str | None:
    credential = found.find(plugin, value)
    return None if credential is None else credential.consumer.name


def test_a_consumer_is_found_by_each_of_its_credentials() -> None:
    jwt = ("jwt-auth", {"key": "jack-key", "secret": "x" * 32})
    basic = ("basic-auth", {"username": "jack", "password": "secret"})
    found = directory(consumer("jack", KEY, jwt, basic, ("ldap-auth", {"user_dn": "cn=jack"})))
    assert owner(found) == "jack"
    assert owner(found, "jwt-auth", b"jack-key") == "jack"
    assert owner(found, "basic-auth", b"jack") == "jack"
    assert owner(found, "ldap-auth", b"cn=jack") == "jack"
    assert owner(found, "hmac-auth", b"sesame") is None


def test_a_sealed_key_is_opened() -> None:
    use = PluginUse(name="key-auth", secrets={"key": ClusterValue(boxes={"r": "sesame"})})
    sealed = consumer("jack").model_copy(update={"credentials": (Credential(use=use),)})
    assert owner(directory(sealed)) == "jack"


def test_of_two_with_one_key_the_older_has_it_in_whatever_order_they_come(caplog) -> None:
    old = consumer("old", KEY, created_at="2025-01-01T00:00:00Z")
    new = consumer("new", KEY, created_at="2026-01-01T00:00:00Z")
    for entries in ([old, new], [new, old]):
        caplog.clear()
        with caplog.at_level(logging.ERROR):
            assert owner(directory(*entries)) == "old"
        [record] = caplog.records
        assert (record.kept_by, record.refused) == ("old", "new")
        assert "sesame" not in caplog.text


def test_one_consumer_in_several_clusters_is_no_conflict(caplog) -> None:
    twice = [consumer("jack", KEY, key=f"{cluster}/default/jack") for cluster in ("c1", "c2")]
    with caplog.at_level(logging.ERROR):
        found = directory(*twice)
        assert owner(found) == "jack"
    assert not caplog.records
    finish(found.replace({}, [twice[0].key]))
    assert owner(found) == "jack"


def test_of_two_of_one_age_the_first_by_name_has_the_key() -> None:
    assert owner(directory(consumer("b", KEY), consumer("a", KEY))) == "a"


def test_who_came_second_moves_up_when_the_first_goes() -> None:
    old, new = consumer("old", KEY), consumer("younger", KEY, created_at="2026-01-01T00:00:00Z")
    found = directory(old, new)
    finish(found.replace({}, [old.key]))
    assert owner(found) == "younger"
    finish(found.replace({}, [new.key]))
    assert owner(found) is None
    assert found.named("younger") is None


def test_a_changed_key_is_no_longer_found_by_the_old_one() -> None:
    found = directory(consumer("jack", KEY))
    changed = consumer("jack", ("key-auth", {"key": "open"}))
    finish(found.replace({changed.key: found.read(changed, unsealed)}, ()))
    assert owner(found) is None
    assert owner(found, value=b"open") == "jack"
    assert found.count == 1


def test_what_cannot_be_read_costs_one_credential_and_names_it(caplog) -> None:
    bad = ("jwt-auth", {"key": "jack", "algorithm": "HS1024"})
    with caplog.at_level(logging.ERROR):
        found = directory(consumer("jack", bad, KEY))
    assert owner(found) == "jack"
    [record] = caplog.records
    assert record.problem.startswith("credentials[0]: plugin jwt-auth, config.algorithm: must be 'HS256'")


@pytest.mark.parametrize("config", [{}, {"key": ""}, {"key": 7}, {"key": "a", "colour": "red"}])
def test_a_consumer_without_a_usable_key_is_not_found(config) -> None:
    found = directory(consumer("jack", ("key-auth", config)))
    assert owner(found, value=b"") is None
    assert found.named("jack") is not None


def test_of_two_groups_of_one_name_the_older_is_meant() -> None:
    old = group("gold").model_copy(update={"key": "c2/gold"})
    new = group("gold", created_at="2026-01-01T00:00:00Z")
    found = directory(new, old)
    first = found.group("gold")
    found.replace_groups({}, [old.key])
    assert found.group("gold") is not first
    assert found.group("") is None


def test_many_come_into_force_in_steps_and_everybody_is_known_in_between(caplog) -> None:
    people = [consumer(f"c{number}", ("key-auth", {"key": f"k{number}"})) for number in range(1200)]
    found = directory(*people)
    turned = [consumer(f"c{number}", ("key-auth", {"key": f"k{1199 - number}"}), group="new") for number in range(1200)]
    steps = found.replace({entry.key: found.read(entry, unsealed) for entry in turned}, ())
    with caplog.at_level(logging.ERROR):
        turns = 0
        for _ in steps:
            turns += 1
            assert all(owner(found, value=b"k%d" % number) for number in range(1200))
    assert turns == 4
    assert owner(found, value=b"k0") == "c1199"
    assert not caplog.records, "what two had in between is no conflict"


@pytest.mark.parametrize(
    ("bad", "problem"),
    [
        (consumer("a\nb", KEY), "upstreams cannot be told of it: "),
        (consumer("jack", ("cors", {})), "credentials[0]: plugin cors: recognises no consumers; "),
    ],
)
def test_who_cannot_be_used_says_why(bad, problem, caplog) -> None:
    with caplog.at_level(logging.ERROR):
        found = directory(bad)
    assert owner(found) is None
    assert caplog.records[0].problem.startswith(problem)


def test_a_secret_that_was_sealed_for_others_is_named_by_its_place(caplog) -> None:
    use = PluginUse(name="key-auth", secrets={"key": ClusterValue(boxes={"other": "x"})})
    sealed = consumer("jack").model_copy(update={"credentials": (Credential(use=use),)})
    found = ConsumerDirectory()
    with caplog.at_level(logging.ERROR):
        finish(found.replace({sealed.key: found.read(sealed, Unsealer([]).open)}, ()))
    assert caplog.records[0].problem.startswith("credentials[0]: plugin key-auth, secrets.key: cannot be opened: ")
