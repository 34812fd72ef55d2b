"""Traffic of all workers, added up."""

from fakes.traffic import counts, of_endpoint, of_route, summary
from headgate.operations.traffic.window import Grouping, Order, TrafficReport, TrafficWindow


class Hearing(TrafficWindow):
    """A window with a clock of the test's."""

    def __init__(self, seconds: float = 10.0) -> None:
        self.now = 0.0
        super().__init__(seconds, lambda: self.now)

    def shown(self, grouping: Grouping = Grouping.ROUTE, order: Order = Order.REQUESTS) -> list[tuple[str, int]]:
        return [(line.name, line.counts.requests) for line in self.asked(grouping, order).lines]

    def asked(self, grouping: Grouping = Grouping.ROUTE, order: Order = Order.REQUESTS) -> TrafficReport:
        return self.report(grouping, order)


def test_workers_are_added_up() -> None:
    heard = Hearing()
    heard.note(summary(of_route("a|r", made=counts(3)), of_route("a|r", "other", counts(1)), worker=0))
    heard.note(summary(of_route("a|r", made=counts(2)), of_route("b|r"), worker=1))
    heard.now = 4.0
    report = heard.asked()
    lines = [(line.name, line.upstream, line.counts.requests) for line in report.lines]
    assert lines == [("a|r", "up", 5), ("a|r", "other", 1), ("b|r", "up", 1)]
    assert (report.workers, report.seconds, report.all.requests) == (2, 4.0, 7)


def test_what_is_long_ago_does_not_count() -> None:
    heard = Hearing(10.0)
    heard.note(summary(of_route("a|r")))
    heard.now = 9.0
    heard.note(summary(of_route("b|r")))
    assert heard.shown() == [("a|r", 1), ("b|r", 1)]
    heard.now = 12.0
    assert heard.shown() == [("b|r", 1)]
    assert heard.asked().seconds == 10.0


def test_hosts_have_all_of_their_routes() -> None:
    heard = Hearing()
    heard.note(summary(of_route("a@web|r"), of_route("a|s"), of_route("", ""), of_route("a|r", "other")))
    assert heard.shown(Grouping.HOST) == [("a", 3), ("", 1)]


def test_endpoints_are_shown_by_themselves() -> None:
    heard = Hearing()
    heard.note(summary(of_route("a|r"), of_endpoint("10.0.0.1:80", counts(2)), of_endpoint("[::1]:80")))
    assert heard.shown(Grouping.ENDPOINT) == [("10.0.0.1:80", 2), ("[::1]:80", 1)]


def test_lines_are_ordered_by_what_is_asked() -> None:
    heard = Hearing()
    many, failing = counts(9, sent=1), counts(3, failed=2)
    slow, large = counts(1, place=40), counts(2, sent=900)
    rows = zip("abcd", (many, failing, slow, large), strict=True)
    heard.note(summary(*(of_route(f"{name}|r", made=made) for name, made in rows)))
    first = {order: heard.shown(order=order)[0][0] for order in Order}
    assert first == {Order.REQUESTS: "a|r", Order.ERRORS: "b|r", Order.P99: "c|r", Order.BYTES: "d|r"}


def test_routes_that_are_told_together_count_as_others() -> None:
    heard = Hearing()
    heard.note(summary(of_route("a|r"), others=counts(7), folded=4))
    report = heard.asked()
    assert (report.others.requests, report.all.requests) == (7, 8)
    assert heard.asked(Grouping.ENDPOINT).others.requests == 0
