"""The stream parsers on mutated inputs, and on all that is in their corpus."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fakes.peers.client_hello import alpn, message, real_hello, records, server_name
from fakes.peers.mqtt import connect
from fuzz.stream_targets import CHECKS, check_client_hello, check_mqtt_connect, check_proxy_header
from headgate.gateway.net.proxy_protocol import Addresses, write_proxy_header

FOLDER = Path(__file__).parent / "corpus"
CORPUS = [(name, path) for name in CHECKS for path in sorted((FOLDER / name).iterdir())]

_V4 = Addresses(("10.0.0.1", 1), ("10.0.0.2", 65535))
_V6 = Addresses(("2001:db8::1", 1), ("::1", 443))
_HEADERS = [write_proxy_header(version, ends) for version in (1, 2) for ends in (_V4, _V6, None)]
_HELLOS = [
    real_hello("a.example.com", ["h2", "http/1.1"]),
    records(message(server_name(b"a.b"), alpn(b"h2")), 7),
    records(message()),
]
_CONNECTS = [
    connect(b"sensor"),
    connect(b"sensor", level=5, properties=b"\x11\x00\x00\x00\x0a"),
    connect(b"x" * 200, payload=b"\x00\x01u"),
    connect(b"", name=b"MQIsdp", level=3),
]
_BYTES = st.integers(0, 255)
_EDIT = st.tuples(st.integers(0, 2000), st.sampled_from(["set", "drop", "double", "insert"]), _BYTES)


def _edited(seeds: list[bytes]) -> st.SearchStrategy[bytes]:
    def edit(data: bytes, edits: list[tuple[int, str, int]], tail: bytes) -> bytes:
        for place, kind, value in edits:
            at = place % (len(data) + 1)
            byte = bytes([value])
            match kind:
                case "set":
                    data = data[:at] + byte + data[at + 1 :]
                case "drop":
                    data = data[:at] + data[at + 1 :]
                case "double":
                    data = data[:at] + data[at // 2 :]
                case _:
                    data = data[:at] + byte + data[at:]
        return data + tail

    return st.builds(edit, st.sampled_from(seeds), st.lists(_EDIT, max_size=4), st.binary(max_size=40))


@settings(max_examples=500)
@given(_edited(_HEADERS) | st.binary(max_size=300))
def test_proxy_headers_in_any_state(data: bytes) -> None:
    check_proxy_header(data)


@settings(max_examples=500)
@given(_edited(_HELLOS) | st.binary(max_size=300))
def test_hellos_in_any_state(data: bytes) -> None:
    check_client_hello(data)


@settings(max_examples=500)
@given(_edited(_CONNECTS) | st.binary(max_size=300))
def test_connect_packets_in_any_state(data: bytes) -> None:
    check_mqtt_connect(data)


@pytest.mark.parametrize(("name", "path"), CORPUS, ids=[f"{name}/{path.name}" for name, path in CORPUS])
def test_input_of_the_corpus(name: str, path: Path) -> None:
    CHECKS[name](path.read_bytes())
