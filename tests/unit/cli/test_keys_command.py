"""`headgate keys`: the pair as files, and as a Secret."""

import json
from pathlib import Path

import pytest

from fakes.translator.sealing import seal
from headgate.cli.__main__ import main
from headgate.common.sealing import Purpose, Unsealer, parse_public_key, read_private_key


def opens(folder: Path) -> bool:
    sealed = seal(b"a key", [parse_public_key((folder / "gateway.pub").read_text())])
    return Unsealer([read_private_key(folder / "gateway.key")]).open(sealed, Purpose.PRIVATE_KEY).reveal() == b"a key"


def test_gateways_open_with_one_file_what_is_sealed_with_the_other(tmp_path: Path) -> None:
    assert main(["keys", str(tmp_path / "sealing")]) == 0
    assert opens(tmp_path / "sealing")
    assert (tmp_path / "sealing" / "gateway.key").stat().st_mode & 0o777 == 0o600


def test_a_pair_that_is_there_is_kept(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["keys", str(tmp_path)])
    before = (tmp_path / "gateway.key").read_bytes()
    capsys.readouterr()
    assert main(["keys", str(tmp_path)]) == 0
    assert "kept" in capsys.readouterr().out
    assert (tmp_path / "gateway.key").read_bytes() == before


def test_a_secret_has_both_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["keys", "--secret", "headgate-sealing"]) == 0
    secret = json.loads(capsys.readouterr().out)
    assert (secret["kind"], secret["metadata"]["name"]) == ("Secret", "headgate-sealing")
    for name, content in secret["stringData"].items():
        (tmp_path / name).write_text(content)
    assert opens(tmp_path)


@pytest.mark.parametrize("arguments", [[], ["folder", "--secret", "name"]], ids=["neither", "both"])
def test_a_folder_or_a_secret_has_to_be_named(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["keys", *arguments]) == 2
    assert "--secret NAME" in capsys.readouterr().err


def test_a_folder_that_cannot_be_written_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").touch()
    assert main(["keys", str(tmp_path / "file" / "sealing")]) == 2
    assert "no key pair could be written" in capsys.readouterr().err


def test_a_file_that_holds_no_key_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "gateway.key").write_text("nothing")
    assert main(["keys", str(tmp_path)]) == 2
    assert "gateway.key does not hold a private key" in capsys.readouterr().err
