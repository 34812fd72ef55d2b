"""PROXY protocol headers, by the examples of the specification and one byte off each rule."""

import struct
from ipaddress import IPv4Address, IPv6Address, ip_address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.gateway.net.proxy_protocol import (
    MAX_HEADER,
    Addresses,
    BadProxyHeader,
    ProxyHeader,
    read_datagram_header,
    read_proxy_header,
    write_datagram_header,
    write_proxy_header,
)

V4 = Addresses(("192.168.0.1", 56324), ("192.168.0.11", 443))
V6 = Addresses(("2001:db8::1", 1), ("2001:db8::2", 65535))
V1_LINE = b"PROXY TCP4 192.168.0.1 192.168.0.11 56324 443\r\n"
SIGNATURE = b"\r\n\r\n\x00\r\nQUIT\n"


def v2(command: int = 0x21, family: int = 0x11, body: bytes = b"\x0a\0\0\1\x0a\0\0\2\x30\x39\x01\xbb") -> bytes:
    return SIGNATURE + struct.pack(">BBH", command, family, len(body)) + body


V2_HEADER = v2()
V2_READ = ProxyHeader(28, Addresses(("10.0.0.1", 12345), ("10.0.0.2", 443)))


def test_version_1_as_the_specification_shows_it() -> None:
    assert read_proxy_header(V1_LINE + b"GET /") == ProxyHeader(len(V1_LINE), V4)
    line = b"PROXY TCP6 2001:db8::1 2001:db8::2 1 65535\r\n"
    assert read_proxy_header(line) == ProxyHeader(len(line), V6)


def test_version_1_unknown_leaves_the_addresses_of_the_connection() -> None:
    for line in (b"PROXY UNKNOWN\r\n", b"PROXY UNKNOWN ffff:f...f:ffff ffff:f...f:ffff 65535 65535\r\n"):
        assert read_proxy_header(line + b"x") == ProxyHeader(len(line), None)


@pytest.mark.parametrize(
    "line",
    [
        b"PROXY TCP4 192.168.0.1 192.168.0.11 56324\r\n",
        b"PROXY TCP4 192.168.0.1 192.168.0.11 56324 443 \r\n",
        b"PROXY TCP4  192.168.0.1 192.168.0.11 56324 443\r\n",
        b"PROXY TCP4 192.168.0.1 192.168.0.11 056324 443\r\n",
        b"PROXY TCP4 192.168.0.1 192.168.0.11 65536 443\r\n",
        b"PROXY TCP4 192.168.0.1 192.168.0.11 -1 443\r\n",
        b"PROXY TCP4 192.168.0.01 192.168.0.11 1 443\r\n",
        b"PROXY TCP4 ::1 192.168.0.11 1 443\r\n",
        b"PROXY TCP6 fe80::1%eth0 ::1 1 443\r\n",
        b"PROXY TCP5 192.168.0.1 192.168.0.11 1 443\r\n",
        b"PROXY tcp4 192.168.0.1 192.168.0.11 1 443\r\n",
        b"PROXY TCP4 192.168.0.1 192.168.0.\xb91 1 443\r\n",
        b"PROXY \r\n",
        b"PROXY UNKNOWN" + b"x" * 94,
        b"PROXZ",
        b"GET / HTTP/1.1\r\n",
        b"\r\n\r\n\x01",
    ],
)
def test_what_breaks_version_1_is_refused(line: bytes) -> None:
    with pytest.raises(BadProxyHeader):
        read_proxy_header(line)


def test_version_1_may_be_107_bytes_and_no_more() -> None:
    longest = b"PROXY UNKNOWN" + b"x" * 0 + b" " + b"f" * 91 + b"\r\n"
    assert len(longest) == 107
    assert read_proxy_header(longest) == ProxyHeader(107, None)
    with pytest.raises(BadProxyHeader):
        read_proxy_header(longest[:-2] + b"f\r\n")


def test_version_2_reads_both_families() -> None:
    assert read_proxy_header(V2_HEADER + b"hello") == V2_READ
    body = bytes.fromhex("20010db8" + "00" * 11 + "01" + "20010db8" + "00" * 11 + "02") + b"\0\1\xff\xff"
    assert read_proxy_header(v2(family=0x21, body=body)) == ProxyHeader(52, V6)


def test_version_2_skips_tlvs_within_the_header() -> None:
    body = V2_HEADER[16:] + b"\x01\x00\x02h2" + b"\x04\x00\x00"
    read = read_proxy_header(v2(body=body))
    assert read == ProxyHeader(16 + len(body), V2_READ.addresses)


def test_version_2_local_and_other_families_leave_the_addresses() -> None:
    assert read_proxy_header(v2(command=0x20, family=0, body=b"")) == ProxyHeader(16, None)
    assert read_proxy_header(v2(family=0, body=b"abc")) == ProxyHeader(19, None)
    assert read_proxy_header(v2(family=0x31, body=bytes(216))) == ProxyHeader(232, None)


@pytest.mark.parametrize(
    "data",
    [
        v2(command=0x22),
        v2(command=0x11),
        v2(family=0x13),
        v2(family=0x41),
        v2(family=0x11, body=bytes(11)),
        v2(family=0x21, body=bytes(35)),
        v2(body=V2_HEADER[16:] + b"\x01\x00"),
        v2(body=V2_HEADER[16:] + b"\x01\x00\x03h2"),
        v2(body=bytes(MAX_HEADER - 15)),
    ],
)
def test_what_breaks_version_2_is_refused(data: bytes) -> None:
    with pytest.raises(BadProxyHeader):
        read_proxy_header(data)


@pytest.mark.parametrize("data", [V1_LINE, V2_HEADER, v2(command=0x20, family=0, body=b"abc")])
def test_every_beginning_of_a_header_may_still_become_one(data: bytes) -> None:
    assert all(read_proxy_header(data[:size]) is None for size in range(len(data)))
    assert read_proxy_header(data) is not None


ADDRESS = st.ip_addresses().map(str)
END = st.tuples(ADDRESS, st.integers(0, 65535))


@given(END, END, st.sampled_from([1, 2]))
def test_what_is_written_is_read_again(source: tuple[str, int], destination: tuple[str, int], version: int) -> None:
    written = write_proxy_header(version, Addresses(source, destination))
    read = read_proxy_header(written)
    assert read is not None
    assert read.size == len(written)
    assert read.addresses is not None
    for (address, port), given_end in zip(read.addresses, (source, destination), strict=True):
        assert port == given_end[1]
        assert ip_address(address) in (ip_address(given_end[0]), _mapped(ip_address(given_end[0])))


def _mapped(address: IPv4Address | IPv6Address) -> IPv6Address:
    return address if isinstance(address, IPv6Address) else IPv6Address(0xFFFF << 32 | int(address))


@pytest.mark.parametrize("version", [1, 2])
def test_a_mapped_address_is_written_as_that_of_a_connection(version: int) -> None:
    read = read_proxy_header(write_proxy_header(version, Addresses(("10.0.0.1", 1), ("2001:db8::1", 2))))
    assert read is not None
    assert read.addresses == Addresses(("::ffff:10.0.0.1", 1), ("2001:db8::1", 2))


def test_a_header_without_addresses_says_so() -> None:
    assert write_proxy_header(1, None) == b"PROXY UNKNOWN\r\n"
    assert read_proxy_header(write_proxy_header(2, None)) == ProxyHeader(16, None)
    assert write_proxy_header(1, V4) == V1_LINE


UDP4 = v2(family=0x12)


def test_a_datagrams_header_says_both_ends() -> None:
    assert read_datagram_header(UDP4 + b"query") == ProxyHeader(28, V2_READ.addresses)
    assert read_datagram_header(write_datagram_header(V6)) == ProxyHeader(52, V6)


@pytest.mark.parametrize("addresses", [V4, V6], ids=["IPv4", "IPv6"])
def test_headers_of_datagrams_and_of_connections_differ_in_the_transport_alone(addresses: Addresses) -> None:
    datagram, stream = write_datagram_header(addresses), write_proxy_header(2, addresses)
    assert (datagram[13] - stream[13], datagram[:13], datagram[14:]) == (1, stream[:13], stream[14:])


def test_a_datagrams_ends_of_two_families_are_written_as_ipv6() -> None:
    header = write_datagram_header(Addresses(("10.0.0.1", 1), ("2001:db8::2", 2)))
    assert read_datagram_header(header).addresses == Addresses(("::ffff:10.0.0.1", 1), ("2001:db8::2", 2))


@pytest.mark.parametrize("header", [v2(command=0x20, family=0, body=b""), v2(family=0x00, body=b"")])
def test_a_datagrams_header_may_leave_its_own_addresses_in_force(header: bytes) -> None:
    assert read_datagram_header(header + b"x") == ProxyHeader(len(header), None)


@pytest.mark.parametrize(
    "data",
    [b"", b"query", V1_LINE, SIGNATURE, UDP4[:-1], v2(), v2(family=0x32, body=bytes(216)), v2(family=0x12, body=b"12")],
    ids=["empty", "none", "version 1", "signature", "cut", "TCP", "UNIX", "no addresses"],
)
def test_a_datagram_without_a_whole_header_about_datagrams_is_refused(data: bytes) -> None:
    with pytest.raises(BadProxyHeader):
        read_datagram_header(data)


@given(st.binary(max_size=80).map(lambda tail: SIGNATURE + tail))
def test_whatever_follows_a_datagrams_signature_is_read_or_refused(data: bytes) -> None:
    try:
        header = read_datagram_header(data)
    except BadProxyHeader:
        return
    assert 16 <= header.size <= len(data)
