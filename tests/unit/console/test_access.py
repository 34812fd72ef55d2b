"""Who may come in, how long a session lasts, and how fast somebody may ask."""

import hashlib
from pathlib import Path

import pytest

from headgate.common.errors import SettingsError
from headgate.console.access.pace import Pace
from headgate.console.access.people import LOOK_S, People, Role
from headgate.console.access.sessions import SESSION_S, Sessions


class Clock:
    def __init__(self) -> None:
        self.now = 1_800_000_000.0

    def __call__(self) -> float:
        return self.now


def entry(name: str, token: str, **more: str) -> str:
    fields = {"name": name, "sha256": hashlib.sha256(token.encode()).hexdigest(), **more}
    return "[[people]]\n" + "".join(f'{key} = "{value}"\n' for key, value in fields.items())


def write(folder: Path, text: str) -> Path:
    path = folder / "people.toml"
    path.write_text(text)
    return path


# People


def test_a_token_is_its_persons(tmp_path: Path) -> None:
    people = People(write(tmp_path, entry("ada", "a", role="operator") + entry("bob", "b")))
    ada, bob = people.find("a"), people.find("b")
    assert ada is not None
    assert (ada.name, ada.role, ada.may_change) == ("ada", Role.OPERATOR, True)
    assert bob is not None
    assert (bob.name, bob.may_change) == ("bob", False)
    assert people.find("c") is None
    assert people.find("") is None


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "people: Field required"),
        ("people = []", "people: "),
        ("[[people", "is not TOML"),
        (entry("ada", "a", role="root"), "people.0.role"),
        ('[[people]]\nname = "ada"\nsha256 = "secret-in-the-clear"', "people.0.sha256"),
        (entry("a|b", "a"), "people.0.name"),
        (entry("ada", "a") + entry("ada", "b"), "two people have one name"),
    ],
)
def test_a_file_that_cannot_be_used_says_why(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(SettingsError) as failure:
        People(write(tmp_path, text))
    assert said in str(failure.value)
    assert "secret-in-the-clear" not in str(failure.value)


def test_a_file_that_is_not_there_says_so(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="cannot be read: No such file"):
        People(tmp_path / "people.toml")


def test_who_is_taken_out_of_the_file_is_out(tmp_path: Path) -> None:
    clock = Clock()
    path = write(tmp_path, entry("ada", "a", role="operator") + entry("bob", "b"))
    people = People(path, clock)
    write(tmp_path, entry("bob", "b") + entry("eve", "e"))
    clock.now += LOOK_S
    assert (people.find("a"), people.named("ada")) == (None, None)
    assert people.find("e") == ("eve", Role.VIEWER)


@pytest.mark.parametrize("text", ["[[people", None])
def test_a_file_that_gets_unusable_changes_nothing(tmp_path: Path, text: str | None) -> None:
    clock = Clock()
    path = write(tmp_path, entry("ada", "a"))
    people = People(path, clock)
    path.unlink() if text is None else write(tmp_path, text)
    clock.now += LOOK_S
    assert people.find("a") == ("ada", Role.VIEWER)


# Sessions


def test_a_session_ends_by_itself() -> None:
    clock = Clock()
    sessions = Sessions(clock)
    cookie = sessions.begin("ada")
    assert (found := sessions.read(cookie)) is not None
    assert found.name == "ada"
    clock.now += SESSION_S + 1
    assert sessions.read(cookie) is None


@pytest.mark.parametrize("cookie", ["", ".", "a.b", "YWRhfDk5OTk5OTk5OTl8eA==.AAAA", "é.é"])
def test_what_we_did_not_sign_is_no_session(cookie: str) -> None:
    assert Sessions().read(cookie) is None


def test_a_session_cannot_be_changed_nor_taken_elsewhere() -> None:
    sessions = Sessions()
    said, _, signature = sessions.begin("bob").partition(".")
    other, _, _ = sessions.begin("ada").partition(".")
    assert sessions.read(f"{other}.{signature}") is None
    assert Sessions().read(f"{said}.{signature}") is None


def test_each_session_has_a_form_token_of_its_own() -> None:
    sessions = Sessions()
    one, other = sessions.read(sessions.begin("ada")), sessions.read(sessions.begin("ada"))
    assert one is not None
    assert other is not None
    assert one.form_token != other.form_token


# Pace


def test_a_client_that_asks_too_fast_waits_and_others_do_not() -> None:
    clock = Clock()
    pace = Pace(rate=1, burst=2, clock=clock)
    assert [pace.take("a") for _ in range(3)] == [True, True, False]
    assert pace.take("b")
    clock.now += 1.5
    assert [pace.take("a") for _ in range(2)] == [True, False]
