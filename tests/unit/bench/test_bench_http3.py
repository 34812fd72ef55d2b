"""The client for HTTP/3 is called as it wants, and what it prints is read as wrk's figures are."""

from pathlib import Path

from bench.clients.http3 import Http3Load
from bench.clients.load import parse_result
from bench.parts.http3 import TITLE, WITH_HTTP3, browser_load
from bench.run import PEERS

PRINTED = (
    '{"bytes":2048,"connect":0,"duration_us":2000000,"max_us":900,"p50_us":500,"p90_us":700,"p999_us":900,'
    '"p99_us":800,"read":1,"requests":2,"status":0,"timeout":0,"write":0}\n'
)


def test_a_round_names_all_that_the_client_needs():
    load = Http3Load("https://a.example/", 8443, 32, 10, 2.5, headers=("accept:*/*",))
    assert load.argv(Path("/bin/load"), 1) == [
        *("taskset", "--cpu-list", "1", "/bin/load", "--connect-to=127.0.0.1:8443"),
        *("--connections=32", "--streams=10", "--seconds=2.5", "--header=accept:*/*", "https://a.example/"),
    ]


def test_the_command_in_the_report_counts_the_headers_of_a_browser():
    load = browser_load("https://a.example/", 4.0)
    command = load.command(Path("/bin/load"), 1)
    assert command.endswith(f"https://a.example/ and {len(load.headers)} --header of a browser")
    assert "--header=" not in command


def test_what_it_prints_is_read():
    found = parse_result(PRINTED, busy=0.5, others=0.0)
    assert (found.requests_per_s, found.p99_ms, found.errors) == (1.0, 0.8, {"read": 1})


def test_the_proxies_that_have_http3_are_among_those_that_are_measured():
    assert {peer.name for peer in PEERS} > WITH_HTTP3
    assert "HTTP/3" in TITLE
