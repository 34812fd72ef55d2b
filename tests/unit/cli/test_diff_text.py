"""Differences as a person reads them."""

from typing import Any

import click
import pytest

from headgate.cli.terminal.diff_text import lines_of, print_diff, summary
from headgate.common.table_diff import FieldChange, ItemChange, TableDiff


def change(kind: Any, operation: Any, name: str, within: str = "", **fields: Any) -> ItemChange:
    return ItemChange(kind=kind, operation=operation, name=name, within=within, **fields)


def text(*changes: ItemChange) -> list[str]:
    return [click.unstyle(line) for line in lines_of(changes)]


def test_routes_stand_below_their_host_which_is_named_once() -> None:
    assert text(
        change("host", "added", "a.example"),
        change("route", "added", "/ prefix", "a.example", content={"backends": [{"upstream": "web"}]}),
        change("route", "removed", "/x exact", "b.example"),
        change("route", "removed", "/y exact", "b.example"),
    ) == [
        "+ host a.example",
        "  + route / prefix",
        "      backends: web",
        "  host b.example",
        "  - route /x exact",
        "  - route /y exact",
    ]


def test_a_field_is_a_line_with_both_values() -> None:
    fields = (
        FieldChange(
            field="backends",
            before=[{"upstream": "a", "weight": 1}],
            after=[{"upstream": "a", "weight": 9}, {"upstream": "b", "weight": 1}],
        ),
        FieldChange(field="timeouts.read_s", before=None, after=30),
        FieldChange(field="plugins.cors", before={"origin": "*"}, after=None),
        FieldChange(field="websocket", before=True, after=False),
    )
    assert text(change("route", "changed", "/ prefix", "a.example", source="Ingress a/b/c", fields=fields)) == [
        "  host a.example",
        "  ~ route / prefix  (Ingress a/b/c)",
        "      backends: a -> a (weight 9), b",
        "      timeouts.read_s: - -> 30",
        '      plugins.cors: {"origin": "*"} -> -',
        "      websocket: true -> false",
    ]


def test_a_condition_is_told_in_words() -> None:
    when = {"subject": "method", "values": ["GET"]}
    assert text(change("route", "removed", "/ prefix", "h", when=when))[1] == "  - route / prefix if method is 'GET'"


def test_long_values_are_cut_and_many_endpoints_too() -> None:
    [_, line] = text(change("certificate", "added", "c", content={"server_names": ["x" * 500]}))
    assert len(line) < 200
    assert line.endswith("...")
    endpoints = [{"address": f"10.0.0.{number}", "port": 80} for number in range(9)]
    [_, line] = text(change("upstream", "added", "u", content={"endpoints": endpoints}))
    assert line.endswith("10.0.0.7:80, ...")


def test_signs_have_the_colours_of_other_diffs() -> None:
    [added] = lines_of([change("host", "added", "a")])
    [removed] = lines_of([change("host", "removed", "a")])
    assert added == click.style("+ host a", fg="green")
    assert removed == click.style("- host a", fg="red")


def test_what_differs_is_counted() -> None:
    diff = TableDiff(
        changes=(change("host", "added", "a"), change("route", "added", "/", "a"), change("host", "added", "b"))
    )
    assert summary(diff) == "2 hosts added, 1 route added"
    assert summary(TableDiff()) == "no difference"


def test_no_difference_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    print_diff(TableDiff(), "one", "other")
    assert capsys.readouterr().out == "no difference between one and other\n"
