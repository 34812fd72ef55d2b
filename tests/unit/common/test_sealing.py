"""Secrets: sealed on the bus, silent in memory."""

import base64
import hashlib
import logging
import pickle
import stat
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from nacl.public import PrivateKey, SealedBox

from fakes.translator.sealing import seal
from headgate.common.errors import SealingError
from headgate.common.sealing import (
    ClusterValue,
    Purpose,
    Sealer,
    Unsealer,
    load_or_create_key_pair,
    parse_public_key,
    read_private_key,
    recipient_id,
)
from headgate.common.secret import Secret

ONE, OTHER = PrivateKey.generate(), PrivateKey.generate()
KEY = Purpose.PRIVATE_KEY


@given(st.binary(max_size=2000))
def test_every_recipient_opens_what_was_sealed(value: bytes) -> None:
    sealed = seal(value, [ONE.public_key, OTHER.public_key])
    for key in (ONE, OTHER):
        assert Unsealer([key]).open(sealed, KEY).reveal() == value


def test_sealed_values_survive_json_and_hold_no_plain_value() -> None:
    sealed = seal(b"top secret", [ONE.public_key])
    text = sealed.model_dump_json()
    assert "top secret" not in text
    assert Unsealer([ONE]).open(ClusterValue.model_validate_json(text), KEY).reveal() == b"top secret"


def test_who_holds_another_key_is_told_which_keys_it_was_sealed_for() -> None:
    sealed = seal(b"x", [ONE.public_key])
    with pytest.raises(SealingError, match=recipient_id(ONE.public_key)):
        Unsealer([OTHER]).open(sealed, KEY)
    with pytest.raises(SealingError, match="no key"):
        Unsealer([]).open(sealed, KEY)


@pytest.mark.parametrize("box", ["AAAA", "not base64!", ""])
def test_a_damaged_box_is_refused(box: str) -> None:
    sealed = ClusterValue(boxes={recipient_id(ONE.public_key): box})
    with pytest.raises(SealingError, match="damaged"):
        Unsealer([ONE]).open(sealed, KEY)


@pytest.mark.parametrize(
    "content", [b"", b"private-key", b"private-key\0c1", b"\xff\n\0c1\0x", b"private-key\0\xff\0x"]
)
def test_a_box_that_somebody_made_in_no_known_form_is_refused_in_one_line(content: bytes) -> None:
    box = base64.b64encode(SealedBox(ONE.public_key).encrypt(b"\0headgate 1\0" + content)).decode()
    with pytest.raises(SealingError) as refused:
        Unsealer([ONE]).open(ClusterValue(boxes={recipient_id(ONE.public_key): box}, cluster="c1"), KEY)
    assert str(refused.value).isprintable()


def test_a_value_that_is_said_to_be_of_another_cluster_is_not_opened() -> None:
    copied = seal(b"x", [ONE.public_key], cluster="paris").of("rome")
    with pytest.raises(SealingError, match="sealed by cluster 'paris', but the table has it from an object of 'rome'"):
        Unsealer([ONE]).open(copied, KEY)


def test_a_table_of_an_earlier_release_names_no_cluster_and_has_what_later_watchers_sealed_opened() -> None:
    passed_on = ClusterValue(boxes=seal(b"x", [ONE.public_key], cluster="paris").boxes)
    assert Unsealer([ONE]).open(passed_on, KEY).reveal() == b"x"


@pytest.mark.parametrize("opened_for", Purpose)
@pytest.mark.parametrize("sealed_for", Purpose)
def test_a_value_is_opened_for_what_it_was_sealed_for(sealed_for: Purpose, opened_for: Purpose) -> None:
    sealed, unsealer = seal(b"x", [ONE.public_key], sealed_for), Unsealer([ONE])
    if sealed_for is opened_for or (sealed_for, opened_for) == (Purpose.VALUE, Purpose.CREDENTIAL):
        assert unsealer.open(sealed, opened_for).reveal() == b"x"
        return
    with pytest.raises(SealingError, match=f"sealed as '{sealed_for}', and not for use as {opened_for}"):
        unsealer.open(sealed, opened_for)


@pytest.mark.parametrize("purpose", Purpose)
def test_what_an_earlier_release_sealed_is_opened_for_all_until_its_key_goes(purpose: Purpose) -> None:
    box = base64.b64encode(SealedBox(ONE.public_key).encrypt(b"x\0y")).decode()
    sealed = ClusterValue(boxes={recipient_id(ONE.public_key): box})
    assert Unsealer([ONE]).open(sealed, purpose).reveal() == b"x\0y"
    with pytest.raises(SealingError):
        Unsealer([OTHER]).open(sealed, purpose)


def test_what_was_sealed_for_others_or_in_the_form_of_earlier_releases_is_sealed_again() -> None:
    now = Sealer("paris", [ONE.public_key]).id
    earlier = hashlib.sha256(recipient_id(ONE.public_key).encode()).hexdigest()[:8]
    assert now == Sealer("paris", [ONE.public_key]).id
    assert now not in (earlier, Sealer("paris", [ONE.public_key, OTHER.public_key]).id)


def test_sealing_for_nobody_is_refused() -> None:
    with pytest.raises(SealingError, match="HEADGATE_SEALING_PUBLIC_KEYS"):
        Sealer("paris", []).seal(b"x", KEY)


def test_a_sealed_value_prints_its_recipients_only() -> None:
    sealed = seal(b"x", [ONE.public_key])
    assert repr(sealed) == str(sealed) == f"ClusterValue(***, recipients=['{recipient_id(ONE.public_key)}'])"


def test_a_key_pair_is_made_once_and_kept_private(tmp_path: Path) -> None:
    key = load_or_create_key_pair(tmp_path / "keys")
    assert bytes(load_or_create_key_pair(tmp_path / "keys")) == bytes(key)
    assert stat.S_IMODE((tmp_path / "keys" / "gateway.key").stat().st_mode) == 0o600
    assert parse_public_key((tmp_path / "keys" / "gateway.pub").read_text()) == key.public_key


@pytest.mark.parametrize("content", [b"", b"AAAA", b"\xff\xfe"])
def test_a_file_that_holds_no_key_is_named(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "gateway.key"
    path.write_bytes(content)
    with pytest.raises(SealingError, match=str(path)):
        read_private_key(path)


def test_a_file_that_is_absent_is_named(tmp_path: Path) -> None:
    with pytest.raises(SealingError, match="absent"):
        read_private_key(tmp_path / "absent")


@pytest.mark.parametrize("text", ["", "AAAA", "not a key", "é"])
def test_text_that_is_no_public_key_is_refused(text: str) -> None:
    with pytest.raises(SealingError, match="public key"):
        parse_public_key(text)


VALUES = st.text(min_size=4).filter(lambda text: "*" not in text) | st.binary(min_size=4)


@given(VALUES)
def test_a_secret_never_prints(value: str | bytes) -> None:
    secret = Secret(value)
    for shown in (
        str(secret),
        repr(secret),
        f"{secret}",
        f"{secret!r}",
        "%s" % secret,  # noqa: UP031 - this is what is tested
        repr([secret]),
        repr({1: secret}),
    ):
        assert "***" in shown
        assert str(value) not in shown
        assert repr(value)[1:-1] not in shown


@given(VALUES)
def test_a_secret_gives_its_value_on_purpose_and_compares_by_it(value: str | bytes) -> None:
    assert Secret(value).reveal() == value
    assert Secret(value) == Secret(value)
    assert Secret(value) != value
    assert len({Secret(value), Secret(value)}) == 1


def test_a_secret_does_not_reach_a_log_or_a_pickle(caplog: pytest.LogCaptureFixture) -> None:
    logging.getLogger("t").warning("key %s", Secret(b"hunter2"), extra={"key": Secret(b"hunter2")})
    assert "hunter2" not in caplog.text
    with pytest.raises(TypeError):
        pickle.dumps(Secret(b"hunter2"))


def test_a_secret_keeps_its_place_in_a_formatted_line() -> None:
    assert f"{Secret('x'):>5}|" == "  ***|"
