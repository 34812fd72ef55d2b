"""`headgate keys --fill`: what a Secret of an API server lacks is added, and nothing else is asked for."""

import asyncio
import base64
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from fakes.kubernetes.api import FakeKubernetes
from fakes.kubernetes.rights import Right, RoleHolder
from fakes.translator.sealing import seal
from headgate.cli.__main__ import main
from headgate.common.sealing import Purpose, Unsealer, parse_public_key, read_private_key

TOKEN = "of the job"
RIGHTS = frozenset(Right(verb, "", "secrets", "generated") for verb in ("get", "patch"))


@pytest.fixture
async def api(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[FakeKubernetes]:
    """A server that we reach as somebody who may read and change one Secret."""
    async with FakeKubernetes() as server:
        server.accounts[TOKEN] = RoleHolder("edge", RIGHTS)
        monkeypatch.setenv("KUBECONFIG", str(server.write_kubeconfig(tmp_path / "config", user={"token": TOKEN})))
        yield server


def put(api: FakeKubernetes, data: dict[str, bytes]) -> None:
    encoded = {key: base64.b64encode(value).decode() for key, value in data.items()}
    metadata = {"name": "generated", "namespace": "edge"}
    api.apply({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": encoded})


def data(api: FakeKubernetes) -> dict[str, bytes]:
    found = api.get("secrets", "generated", "edge").get("data") or {}
    return {key: base64.b64decode(value) for key, value in found.items()}


async def fill(*arguments: str) -> int:
    return await asyncio.to_thread(main, ["keys", "--fill", "generated", "--namespace", "edge", *arguments])


async def test_an_empty_secret_gets_a_pair_and_passwords(api: FakeKubernetes, tmp_path: Path) -> None:
    put(api, {})
    assert await fill("--password", "gateway-password", "--password", "reader-password") == 0
    found = data(api)
    assert set(found) == {"gateway.key", "gateway.pub", "gateway-password", "reader-password"}
    assert found["gateway-password"] != found["reader-password"]
    (tmp_path / "key").write_bytes(found["gateway.key"])
    sealed = seal(b"value", [parse_public_key(found["gateway.pub"].decode())])
    assert Unsealer([read_private_key(tmp_path / "key")]).open(sealed, Purpose.PRIVATE_KEY).reveal() == b"value"


async def test_what_is_there_is_kept_and_what_lacks_is_added(api: FakeKubernetes) -> None:
    there = {"gateway.key": b"a", "gateway.pub": b"b", "gateway-password": b"c"}
    put(api, there)
    assert await fill("--password", "gateway-password", "--password", "reader-password") == 0
    assert there.items() < data(api).items()
    assert len(data(api)["reader-password"]) > 40


async def test_a_secret_that_lacks_nothing_is_not_written(
    api: FakeKubernetes, capsys: pytest.CaptureFixture[str]
) -> None:
    put(api, {"gateway-password": b"c"})
    assert await fill("--no-pair", "--password", "gateway-password") == 0
    assert "nothing was missing" in capsys.readouterr().out
    assert (api.seen("patch"), list(data(api))) == ([], ["gateway-password"])


async def test_a_private_key_alone_is_added_once(api: FakeKubernetes, tmp_path: Path) -> None:
    put(api, {})
    assert await fill("--no-pair", "--key", "translator.key") == 0
    made = data(api)
    (tmp_path / "key").write_bytes(made["translator.key"])
    assert read_private_key(tmp_path / "key")
    assert await fill("--no-pair", "--key", "translator.key") == 0
    assert data(api) == made


async def test_half_a_pair_is_not_replaced(api: FakeKubernetes, capsys: pytest.CaptureFixture[str]) -> None:
    put(api, {"gateway.key": b"a"})
    assert await fill() == 2
    assert "gateway.key without its other half" in capsys.readouterr().err
    assert data(api) == {"gateway.key": b"a"}


async def test_a_secret_that_somebody_else_changed_meanwhile_is_left_to_the_next_try(
    api: FakeKubernetes, capsys: pytest.CaptureFixture[str]
) -> None:
    put(api, {})
    api.faults.status(409, verb="patch", resource="secrets")
    assert await fill() == 3
    assert "try again" in capsys.readouterr().err


async def test_a_secret_that_is_not_there_or_not_ours_is_one_line(
    api: FakeKubernetes, capsys: pytest.CaptureFixture[str]
) -> None:
    assert await fill() == 2
    assert "there is no Secret edge/generated" in capsys.readouterr().err
    assert await asyncio.to_thread(main, ["keys", "--fill", "other", "--namespace", "edge"]) == 2
    assert "get and patch of Secret other in edge" in capsys.readouterr().err
