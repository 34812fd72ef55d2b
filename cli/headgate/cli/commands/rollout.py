"""`headgate rollout`: how far a changed table has got, and a person's decision about it."""

from collections.abc import Iterator
from pathlib import Path

import click

from headgate.cli.commands.history import describe_entries
from headgate.cli.running.changing import make_request, report_done, request_options
from headgate.cli.running.store import ask_stores, store_options
from headgate.cli.terminal.errors import ExitCode, UsageMistake
from headgate.cli.terminal.group import TeachingCommand
from headgate.cli.terminal.rendering import print_json
from headgate.common.snapshot import Rollout, RolloutPhase
from headgate.operations.changing.rollout import go_back, promote
from headgate.operations.rollouts.analysis import describe_errors, percentile_ms
from headgate.operations.rollouts.figures import Comparison, name_some, what_changes
from headgate.operations.status.rollout import RolloutState, as_document, read_rollout
from headgate.operations.tables.held import describe_rollout


@click.command(
    cls=TeachingCommand,
    examples=[
        "headgate rollout                                      # which replicas, which figures, what waits",
        "headgate rollout promote --reason 'checked by hand'   # everywhere, now",
        "headgate rollout back --reason 'wrong backend'        # nowhere, until it is changed",
    ],
    read_more="docs/rollouts.md",
)
@click.argument("decision", type=click.Choice(["promote", "back"]), required=False)
@request_options
@store_options
def rollout(
    decision: str | None, reason: str, by: str, nats_url: str, data_dir: Path, table: str, as_json: bool
) -> int:
    """Say how far a changed table has got: which replicas serve it, how they do, what waits behind it.

    `promote` makes all replicas serve it now, also a table that the fleet went back from. `back` takes it from the
    replicas that serve it; the next change of the objects begins another rollout.
    """
    if decision is not None:
        decide, request = {"promote": promote, "back": go_back}[decision], make_request(by, reason)
        return report_done(
            ask_stores(nats_url, data_dir, lambda stores: decide(stores, table, request)), table, as_json
        )
    if by or reason:
        raise UsageMistake("--by and --reason belong to a decision: headgate rollout promote, or headgate rollout back")
    state = ask_stores(nats_url, data_dir, lambda stores: read_rollout(stores, table))
    if as_json:
        print_json(as_document(state))
    else:
        for line in describe(state):
            click.echo(line)
    return ExitCode.OK


def describe(state: RolloutState) -> Iterator[str]:
    """Yield the lines for a person."""
    current, manifest = state.manifest.rollout, state.manifest
    if current is None or state.figures is None:
        served = f"the routes of revision {manifest.pin.version}" if manifest.pin else f"revision {manifest.version}"
        yield f"table {state.table}: nothing is rolled out; all replicas serve {served}"
        return
    yield click.style(f"table {state.table}: {describe_rollout(current)}", bold=True)
    yield f"  changes:  {describe_entries(current.changed) or 'nothing that has a name'}"
    if current.phase is RolloutPhase.STEPPING:
        yield f"  serve it: {name_some(current.replicas)}, {len(current.replicas)} of {state.replicas} replicas"
        yield from _figures(current, state.figures)
    if current.ended:
        yield f"  ended:    {', '.join(current.ended)}, without a word after taking it"
    if waits := describe_entries(state.waiting):
        yield f"  waits:    {waits}"
    if current.phase is RolloutPhase.HELD:
        yield "Change the objects, or: headgate rollout promote. What differs: headgate diff HEAD next"
    else:
        yield "To decide: headgate rollout promote, or headgate rollout back. What differs: headgate diff HEAD next"


def _figures(current: Rollout, found: Comparison) -> Iterator[str]:
    scopes = [(what_changes(current), found.chosen.changed, found.others.changed)]
    for what, mine, theirs in [*scopes, ("all requests", found.chosen.all, found.others.all)]:
        figures = f"errors {describe_errors(mine)} requests, against {describe_errors(theirs)}"
        times = f"95% within {percentile_ms(mine):g} ms, against {percentile_ms(theirs):g} ms"
        yield f"  {what}: {figures}; {times}"
