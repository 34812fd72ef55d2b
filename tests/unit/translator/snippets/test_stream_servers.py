"""Servers of nginx' stream block: what is followed, and what is refused with its line."""

import pytest

from headgate.translator.snippets.errors import SnippetError
from headgate.translator.snippets.streams import StreamServer, Target, read_streams

PASS = "proxy_pass db.example:5432;"
TO = (Target("db.example", 5432),)


@pytest.mark.parametrize(
    ("text", "server"),
    [
        (f"listen 80; {PASS}", StreamServer(80, False, TO)),
        (f"listen *:80; {PASS}", StreamServer(80, False, TO)),
        (f"listen 0.0.0.0:80 reuseport backlog=5; listen [::]:80 ipv6only=on; {PASS}", StreamServer(80, False, TO)),
        (f"listen 53 udp; {PASS} proxy_responses 1;", StreamServer(53, True, TO, udp_responses=1)),
        (f"listen 80 proxy_protocol; {PASS}", StreamServer(80, False, TO, takes_proxy_header=True)),
        (f"listen 80; {PASS} proxy_protocol on;", StreamServer(80, False, TO, sends_proxy_header=True)),
        (
            f"listen 80; {PASS} proxy_timeout 1h; proxy_connect_timeout 2s;",
            StreamServer(80, False, TO, connect_timeout_s=2, idle_timeout_s=3600),
        ),
        (
            f"listen 80; allow 10.0.0.0/8; allow ::1; deny all; {PASS}",
            StreamServer(80, False, TO, networks=("10.0.0.0/8", "::1/128")),
        ),
        ("listen 80; proxy_pass [2001:db8::1]:81;", StreamServer(80, False, (Target("2001:db8::1", 81),))),
        (f"listen 80; {PASS} tcp_nodelay on; access_log off;", StreamServer(80, False, TO)),
    ],
)
def test_servers_are_read(text: str, server: StreamServer) -> None:
    assert read_streams(f"server {{ {text} }}") == (server,)


def test_upstreams_may_come_behind_their_servers() -> None:
    text = (
        "server { listen 1; listen 2 udp; proxy_pass a; } upstream a { zone x 64k; server b:3 weight=2; server c:4; }"
    )
    targets = (Target("b", 3, 2), Target("c", 4))
    assert read_streams(text) == (StreamServer(1, False, targets), StreamServer(2, True, targets))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (f"server {{ listen 0; {PASS} }}", "'0' is not a port from 1 to 65535"),
        (f"server {{ listen 65536; {PASS} }}", "is not a port"),
        (f"server {{ listen unix:/a; {PASS} }}", "is not a port"),
        (f"server {{ listen 127.0.0.1:80; {PASS} }}", "leave the address out"),
        (f"server {{ listen 80 ssl; {PASS} }}", "'ssl' is not followed here"),
        ("server { listen 80; proxy_pass a; }", "neither an upstream"),
        ("server { listen 80; proxy_pass a:0; }", "neither an upstream"),
        ("server { listen 80; proxy_pass $name; }", "neither an upstream"),
        ("server { listen 80; proxy_pass unix:/a; }", "neither an upstream"),
        (f"server {{ {PASS} }}", "needs listen and proxy_pass"),
        (f"server {{ listen 80; {PASS} deny all; }}", "behind allow only"),
        (f"server {{ listen 80; {PASS} deny 10.0.0.1; }}", "behind allow only"),
        (f"server {{ listen 80; {PASS} allow 10.0.0.1; }}", "with deny all behind it"),
        (f"server {{ listen 80; {PASS} allow 10.0.0.1; deny all; allow 10.0.0.2; }}", "stands behind deny all"),
        (f"server {{ listen 80; {PASS} allow unix:; deny all; }}", "is no address or network"),
        (f"server {{ listen 80; {PASS} proxy_timeout 0; }}", "must be more than 0"),
        (f"server {{ listen 80; {PASS} proxy_responses x; }}", "is no number"),
        (f"server {{ listen 80; {PASS} proxy_ssl on; }}", "proxy_ssl: is not followed here"),
        ("upstream a { }", "has no servers"),
        ("upstream a { server b:1 backup; }", "'backup' is not followed here"),
        ("upstream a { least_conn; server b:1; }", "least_conn: is not followed here"),
        ("server_name a;", "is not followed here"),
        (" ".join(f"server {{ listen {port}; {PASS} }}" for port in range(1, 102)), "at most 100 are taken"),
    ],
)
def test_what_cannot_be_said_is_refused(text: str, message: str) -> None:
    with pytest.raises(SnippetError, match=message.replace("(", r"\(")):
        read_streams(text)
