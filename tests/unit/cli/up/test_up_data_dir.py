"""What `up` keeps in its data directory."""

import os
import socket
from pathlib import Path

import pytest

from headgate.cli.terminal.errors import UsageMistake
from headgate.cli.up.data_dir import locked, nats_port, read_state, write_state
from headgate.operations.status.up_state import UpState

STATE = UpState(
    pid=os.getpid(), nats_url="nats://x", admin_url="http://x", http_port=1, https_port=2, processes={"gateway": 3}
)


def test_a_second_user_of_a_data_directory_is_refused_and_told_by_whom(tmp_path: Path) -> None:
    with locked(tmp_path):
        write_state(tmp_path, STATE)
        with (
            pytest.raises(UsageMistake, match=rf"another `headgate up` \(process {os.getpid()}\) uses"),
            locked(tmp_path),
        ):
            pass


def test_a_data_directory_can_be_used_again_and_keeps_no_state_file(tmp_path: Path) -> None:
    with locked(tmp_path):
        write_state(tmp_path, STATE)
        assert read_state(tmp_path) == STATE
    assert read_state(tmp_path) is None
    with locked(tmp_path):
        pass


def test_a_state_file_of_an_up_that_was_killed_does_not_count(tmp_path: Path) -> None:
    tmp_path.joinpath("up.lock").touch()
    write_state(tmp_path, STATE)
    assert read_state(tmp_path) is None


def test_a_folder_that_cannot_be_made_is_one_line(tmp_path: Path) -> None:
    tmp_path.joinpath("file").touch()
    with pytest.raises(UsageMistake, match="cannot be written"), locked(tmp_path / "file" / "data"):
        pass


def test_the_broker_comes_back_on_its_port(tmp_path: Path) -> None:
    assert nats_port(tmp_path) == nats_port(tmp_path)


def test_the_broker_gets_another_port_if_its_own_was_taken(tmp_path: Path) -> None:
    port = nats_port(tmp_path)
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", port))
        listener.listen()
        assert nats_port(tmp_path) != port


def test_a_damaged_port_file_is_replaced(tmp_path: Path) -> None:
    tmp_path.joinpath("nats.port").write_text("none")
    assert nats_port(tmp_path) > 0
