"""Accounts with an authority: kept in the log, and registered anew where the authority knows them no more."""

from collections.abc import Mapping
from typing import Any

import pytest
from nacl.public import PrivateKey

from headgate.common.acme import AccountState
from headgate.translator.leading.acme import accounts as module
from headgate.translator.leading.acme.accounts import Accounts
from headgate.translator.world.resolver_settings import ResolverSettings

SETTINGS = ResolverSettings(directory="https://ca.test/directory", email="ops@a.test")


class SimulatedAuthority:
    """An authority that registers whoever has no account."""

    registered = 0

    def __init__(self, _settings: ResolverSettings, _key: object, uri: str = "") -> None:
        self.uri = uri

    def open(self) -> None:
        if not self.uri:
            SimulatedAuthority.registered += 1
            self.uri = f"https://ca.test/account/{SimulatedAuthority.registered}"


class Log:
    """Keeps the last account, as the translation does."""

    def __init__(self) -> None:
        self.account: AccountState | None = None

    async def append(self, delta: Any) -> None:
        written: Mapping[str, Any] = delta.object
        self.account = AccountState.model_validate(written["spec"])


@pytest.fixture(autouse=True)
def _simulated(monkeypatch: pytest.MonkeyPatch) -> None:
    SimulatedAuthority.registered = 0
    monkeypatch.setattr(module, "Authority", SimulatedAuthority)


def accounts(log: Log, key: PrivateKey) -> Accounts:
    return Accounts("default", key, log, lambda _resolver: log.account)  # type: ignore[arg-type]


async def test_an_account_is_registered_once_and_found_in_the_log() -> None:
    log, key = Log(), PrivateKey.generate()
    first = accounts(log, key)
    uri = (await first.open("default", SETTINGS)).uri
    assert (await first.open("default", SETTINGS)).uri == uri
    assert (await accounts(log, key).open("default", SETTINGS)).uri == uri
    assert SimulatedAuthority.registered == 1


async def test_one_that_the_authority_does_not_know_is_registered_anew() -> None:
    log, key = Log(), PrivateKey.generate()
    one = accounts(log, key)
    uri = (await one.open("default", SETTINGS)).uri
    one.forget("default")
    renewed = (await one.open("default", SETTINGS)).uri
    assert renewed != uri
    assert (await one.open("default", SETTINGS)).uri == renewed


async def test_one_of_another_key_is_registered_anew() -> None:
    log = Log()
    uri = (await accounts(log, PrivateKey.generate()).open("default", SETTINGS)).uri
    assert (await accounts(log, PrivateKey.generate()).open("default", SETTINGS)).uri != uri
