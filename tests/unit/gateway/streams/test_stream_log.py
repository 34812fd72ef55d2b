import json
import re

from headgate.gateway.streams.log import Status, StreamRecord, combined_line, json_line

RECORD = StreamRecord(
    "tls", "10.0.0.1", 443, "db.test", Status.NO_UPSTREAM, 3, 5, 1.25, "ns/db", "c/ns/db", "10.1.0.1:1", 'a "b"'
)


def test_combined_line_has_protocol_port_and_name_where_http_has_the_request() -> None:
    assert re.fullmatch(
        r'10\.0\.0\.1 - - \[\d\d/\w{3}/\d{4}:\d\d:\d\d:\d\d \+0000\] "TLS 443 db\.test" 502 3 5 1\.250 '
        r'"ns/db" "10\.1\.0\.1:1" "a \\x22b\\x22"\n',
        combined_line(RECORD).decode(),
    )


def test_json_line_leaves_out_what_is_empty() -> None:
    entry = json.loads(json_line(RECORD._replace(server_name="", reason="", status=Status.OK)))
    assert entry.pop("time").endswith("Z")
    assert entry == {
        "protocol": "tls",
        "client": "10.0.0.1",
        "port": 443,
        "status": 200,
        "received": 3,
        "sent": 5,
        "seconds": 1.25,
        "route": "ns/db",
        "upstream": "c/ns/db",
        "endpoint": "10.1.0.1:1",
    }
