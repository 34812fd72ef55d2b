"""What must hold for any bytes that a stream parser is given; raises AssertionError if it does not."""

from headgate.common.table import MqttConnect
from headgate.gateway.net.proxy_protocol import (
    MAX_HEADER,
    BadProxyHeader,
    ProxyHeader,
    read_proxy_header,
    write_proxy_header,
)
from headgate.gateway.streams.mqtt import MAX_CONNECT, NotMqtt, read_client_id
from headgate.gateway.tls.client_hello import MAX_HELLO, ClientHello, HelloOutcome, read_client_hello


def proxy_verdict(data: bytes) -> ProxyHeader | str | None:
    try:
        return read_proxy_header(data)
    except BadProxyHeader:
        return "bad"


def check_proxy_header(data: bytes) -> None:
    """A verdict is final, comes in time, depends on the header alone, and what was read can be written again."""
    whole = proxy_verdict(data)
    assert whole is not None or len(data) < MAX_HEADER
    for end in {len(data) // 2, max(0, len(data) - 1), min(len(data), 16)}:
        part = proxy_verdict(data[:end])
        assert part is None or part == whole
    if isinstance(whole, ProxyHeader):
        assert 0 < whole.size <= min(len(data), MAX_HEADER)
        assert proxy_verdict(data[: whole.size]) == whole
        assert proxy_verdict(data[: whole.size - 1]) is None
        for version in (1, 2):
            again = proxy_verdict(write_proxy_header(version, whole.addresses))
            assert isinstance(again, ProxyHeader)
            assert again.addresses == whole.addresses


def check_client_hello(data: bytes) -> None:
    """A verdict is final and comes in time; names are such that a route could have them."""
    whole = read_client_hello(data)
    assert whole is not HelloOutcome.NEED_MORE or len(data) < MAX_HELLO
    for end in {len(data) // 2, max(0, len(data) - 1), min(len(data), 64)}:
        part = read_client_hello(data[:end])
        assert part is HelloOutcome.NEED_MORE or part == whole
    if isinstance(whole, ClientHello):
        assert whole.server_name == whole.server_name.lower()
        assert whole.server_name.isascii()
        assert len(whole.server_name) <= 255
        assert all(0 < len(protocol) < 256 for protocol in whole.alpn)


def mqtt_verdict(data: bytes, expected: MqttConnect) -> bytes | str | None:
    try:
        return read_client_id(data, expected)
    except NotMqtt as refusal:
        return str(refusal)


def check_mqtt_connect(data: bytes) -> None:
    """A verdict is final and comes in time; no packet is one of two levels."""
    verdicts = []
    for level in (3, 4, 5):
        expected = MqttConnect(protocol_level=level)
        whole = mqtt_verdict(data, expected)
        assert whole is not None or len(data) < MAX_CONNECT
        for end in {len(data) // 2, max(0, len(data) - 1), min(len(data), 16)}:
            part = mqtt_verdict(data[:end], expected)
            assert part is None or part == whole
        if isinstance(whole, bytes):
            assert whole in data
            assert "\0" not in whole.decode()
            verdicts.append(whole)
    assert len(verdicts) <= 1


CHECKS = {
    "proxy_header": check_proxy_header,
    "client_hello": check_client_hello,
    "mqtt_connect": check_mqtt_connect,
}
