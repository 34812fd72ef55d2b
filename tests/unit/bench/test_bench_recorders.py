"""What the bench's own clients say, and the table that is swapped."""

import json
from dataclasses import asdict

import pytest
from bench.clients.transfer import Transferred, parse_transfer
from bench.errors import BenchError
from bench.parts.connections import HeldRow
from bench.recording.idle_clients import parse_idle
from bench.recording.open_streams import StreamCounts, parse_counts
from bench.recording.swapper import Swapped, entries, read_spec
from bench.reporting.tables import table
from bench.servers.echo_origin import accept_value
from bench.setup.gateway import read_metric

METRICS = """\
# TYPE headgate_table_swaps_total counter
headgate_table_swaps_total{worker="0"} 3.0
headgate_table_swaps_total{worker="1"} 4.0
headgate_table_swaps_totally 9.0
"""


def test_a_transfer_is_read_back():
    said = Transferred(200, 2_000_000, 0.5)
    assert parse_transfer(json.dumps(asdict(said))) == said
    assert said.megabytes_per_s == 4.0


@pytest.mark.parametrize("text", ["", "Traceback", '{"status": 200}'])
def test_a_transfer_without_figures_is_an_error(text: str):
    with pytest.raises(BenchError, match="no figures"):
        parse_transfer(text)


def test_idle_clients_say_three_numbers():
    lines = ["opened 5", "lost 1", "answered 4", "because using: closed while at rest"]
    assert parse_idle(lines) == {"opened": 5, "lost": 1, "answered": 4}
    with pytest.raises(BenchError, match="no figures"):
        parse_idle(lines[:2])


def test_memory_of_a_connection_is_what_the_proxy_grew_by():
    row = HeldRow("Headgate", "http", 1000, 1000, 0, 1000, before_mb=80, held_mb=90)
    assert row.kilobytes_each == 10


def test_counts_of_streams_are_read_back():
    said = StreamCounts({"grpc": 2}, {"grpc": 20}, ["grpc: closed"])
    assert parse_counts(json.dumps(asdict(said))) == said
    with pytest.raises(BenchError, match="no figures"):
        parse_counts("")


def test_a_metric_is_summed_over_its_labels():
    assert read_metric(METRICS, "headgate_table_swaps_total") == 7
    with pytest.raises(BenchError, match="no metric"):
        read_metric(METRICS, "headgate_table")


def test_a_websocket_is_accepted_as_the_standard_says():
    assert accept_value(b"dGhlIHNhbXBsZSBub25jZQ==") == b"s3pPLMBiTxaQ9kYGzzhZRbK+xOo="


def test_every_revision_changes_routes_and_endpoints():
    services = [Swapped("plain", (9001, 9002)), Swapped("grpc", (9003, 9003), speaks_http2=True)]
    assert read_spec(json.dumps([asdict(service) for service in services])) == services
    first, second = list(entries(services, 1)), list(entries(services, 2))
    assert [len(entry.endpoints) for entry in (first[0], second[0])] == [2, 1]  # type: ignore[union-attr]
    assert all(old != new for old, new in zip(first[1::2], second[1::2], strict=True))
    assert first[2].protocol == "h2c"  # type: ignore[union-attr]


def test_the_rows_of_a_table_are_as_long_as_its_head():
    with pytest.raises(ValueError, match="zip"):
        table(("", "b"), [["only"]])
