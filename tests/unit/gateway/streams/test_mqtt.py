"""Client ids in CONNECT packets, whole, in pieces, and one byte off the grammar."""

import pytest

from fakes.peers.mqtt import connect, text
from headgate.common.table import MqttConnect
from headgate.gateway.streams.mqtt import MAX_CONNECT, NotMqtt, read_client_id

MQTT_3 = MqttConnect(protocol_level=4)
MQTT_5 = MqttConnect(protocol_level=5)
FLAGS = 2 + 4 + 2 + 1
"""Where the flags of a short packet are: behind the header, the name and the level."""


def refused(data: bytes, expected: MqttConnect = MQTT_3) -> str:
    with pytest.raises(NotMqtt) as refusal:
        read_client_id(data, expected)
    return str(refusal.value)


def with_flags(flags: int, level: int = 4) -> bytes:
    return connect(level=level, flags=flags)


def test_the_client_id_is_read_and_what_follows_does_not_matter() -> None:
    assert read_client_id(connect(b"a-1"), MQTT_3) == b"a-1"
    assert read_client_id(connect(b"a-1", flags=0x82, payload=text(b"user")) + b"\xff", MQTT_3) == b"a-1"
    assert read_client_id(connect("ä".encode()), MQTT_3) == "ä".encode()
    assert read_client_id(connect(b""), MQTT_3) == b""


@pytest.mark.parametrize("size", [0, 5, 127, 128, 2000])
def test_properties_of_mqtt_5_are_skipped(size: int) -> None:
    assert read_client_id(connect(b"a-1", level=5, properties=b"\x26" * size), MQTT_5) == b"a-1"


def test_every_beginning_needs_more() -> None:
    packet = connect(b"x" * 300, level=5, properties=b"\x00" * 130)
    assert all(read_client_id(packet[:size], MQTT_5) is None for size in range(len(packet)))
    assert read_client_id(packet, MQTT_5) == b"x" * 300


def test_will_and_credentials_are_not_waited_for() -> None:
    packet = connect(b"a-1", flags=0x82, payload=text(b"user" * 500))
    assert read_client_id(packet[:-1999], MQTT_3) == b"a-1"


def test_another_name_or_level_is_refused_as_soon_as_it_is_there() -> None:
    assert refused(connect(name=b"MQIsdp")[:4]) == "the name of its protocol is not MQTT"
    assert refused(connect(name=b"MQTX")[:8]) == "the name of its protocol is not MQTT"
    assert refused(connect(level=5)[:9]) == "its protocol level is 5, not 4"
    assert refused(connect(), MQTT_5) == "its protocol level is 4, not 5"
    old = MqttConnect(protocol_name="MQIsdp", protocol_level=3)
    assert read_client_id(connect(b"a-1", name=b"MQIsdp", level=3), old) == b"a-1"


@pytest.mark.parametrize("first", [b"\x11", b"\x00", b"\x20", b"\x30", b"\x16\x03\x01", b"GET / HTTP/1.1\r\n"])
def test_what_begins_with_another_packet_or_protocol_is_refused_at_once(first: bytes) -> None:
    assert refused(first) == "it does not begin with a CONNECT packet"


@pytest.mark.parametrize("length", [b"\xff\xff\xff\xff", b"\x80\x80\x80\x80", b"\x8e\x00", b"\x80\x00"])
def test_lengths_have_four_bytes_at_most_and_none_too_many(length: bytes) -> None:
    assert refused(b"\x10" + length + connect()[2:]) == "a length in its CONNECT packet is malformed"


@pytest.mark.parametrize("length", [0, 1, 9, 19])
def test_fields_end_within_the_packet(length: int) -> None:
    packet = connect(b"12345678")
    assert packet[1] == 20
    shorter = packet[:1] + bytes([length]) + packet[2:]
    assert refused(shorter) == "a field goes beyond the end of its CONNECT packet"


@pytest.mark.parametrize(
    ("flags", "level"), [(0x03, 4), (0x1E, 4), (0x0A, 4), (0x22, 4), (0x42, 4), (0x03, 5), (0x1E, 5), (0x0A, 5)]
)
def test_flags_that_the_protocol_forbids_are_refused(flags: int, level: int) -> None:
    expected = MqttConnect(protocol_level=level)
    assert refused(with_flags(flags, level), expected) == "the flags in its CONNECT packet are not allowed"


@pytest.mark.parametrize(("flags", "level"), [(0x00, 4), (0x36, 4), (0xC2, 4), (0x82, 4), (0x42, 5)])
def test_flags_that_the_protocol_knows_are_taken(flags: int, level: int) -> None:
    assert read_client_id(with_flags(flags, level), MqttConnect(protocol_level=level)) == b"sensor-1"


@pytest.mark.parametrize("client_id", [b"\xff", b"a\x00b", b"\xed\xa0\x80"])
def test_a_client_id_is_text(client_id: bytes) -> None:
    assert refused(connect(client_id)) == "the client id in its CONNECT packet is no text"


def test_a_packet_is_refused_once_its_client_id_cannot_end_in_time() -> None:
    packet = connect(b"a", level=5, properties=b"\x00" * MAX_CONNECT)
    assert "does not end within 16384 bytes" in refused(packet[:20], MQTT_5)
    fits = connect(b"x" * (MAX_CONNECT - 15))
    assert len(fits) == MAX_CONNECT
    assert read_client_id(fits, MQTT_3) == b"x" * (MAX_CONNECT - 15)
    assert "does not end within 16384 bytes" in refused(connect(b"x" * (MAX_CONNECT - 14))[:30])
