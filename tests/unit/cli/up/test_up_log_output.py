"""The services' lines with their names before them."""

import io

from headgate.cli.up.log_output import LogOutput


def output(*, colour: bool = False) -> tuple[LogOutput, io.BytesIO]:
    sink = io.BytesIO()
    return LogOutput(sink, width=7, colour=colour), sink


def test_every_line_of_a_block_is_prefixed() -> None:
    out, sink = output()
    out.channel("gateway").feed(b"one\ntwo\n")
    assert sink.getvalue() == b"gateway | one\ngateway | two\n"


def test_half_a_line_waits_for_its_end() -> None:
    out, sink = output()
    channel = out.channel("nats")
    channel.feed(b"on")
    channel.feed(b"e\ntw")
    assert sink.getvalue() == b"nats    | one\n"
    channel.close()
    assert sink.getvalue() == b"nats    | one\nnats    | tw\n"


def test_two_services_do_not_mix_within_a_line() -> None:
    out, sink = output()
    one, two = out.channel("a"), out.channel("b")
    one.feed(b"first ")
    two.feed(b"other\n")
    one.feed(b"half\n")
    assert sink.getvalue() == b"b       | other\na       | first half\n"


def test_each_service_has_a_colour_of_its_own_on_a_terminal() -> None:
    out, sink = output(colour=True)
    out.channel("a").feed(b"x\n")
    out.channel("b").feed(b"x\n")
    first, second = sink.getvalue().splitlines()
    assert first.split(b"m")[0] != second.split(b"m")[0]


def test_a_closed_terminal_stops_the_log_and_nothing_else() -> None:
    out, sink = output()
    channel = out.channel("a")
    sink.close()
    channel.feed(b"x\n")
    channel.feed(b"y\n")
