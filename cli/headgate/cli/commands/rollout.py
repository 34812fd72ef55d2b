"""`headgate rollout`: how far a changed table has got, and a person's decision about it."""

from collections.abc import Iterator, Mapping
from math import inf
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import click

from headgate.cli.commands.history import describe_entries
from headgate.cli.running.changing import Done, finish, greatest_served, make_request, report_done, told, wish_options
from headgate.cli.running.store import ask_stores, store_options
from headgate.cli.terminal.errors import ExitCode, UsageMistake
from headgate.cli.terminal.group import TeachingCommand
from headgate.cli.terminal.rendering import print_json
from headgate.common.heartbeats import TrafficCounts
from headgate.common.snapshot import ChangedEntries, Manifest, Rollout, RolloutPhase, changed_entries
from headgate.common.stores import SnapshotStore
from headgate.common.stores.opening import Stores
from headgate.common.stores.reading import read_chunks
from headgate.common.table import EntryKind
from headgate.operations.tables.held import describe_rollout
from headgate.operations.tables.revisions import Image, current_manifest, find_image
from headgate.translator.serving.manual_commits import ChangeRequest
from headgate.translator.serving.rollout.analysis import describe_errors, percentile_ms
from headgate.translator.serving.rollout.control import RolloutControl
from headgate.translator.serving.rollout.figures import Comparison, Side, compare, name_some, what_changes


class State(NamedTuple):
    """How far a table has got."""

    table: str
    manifest: Manifest
    figures: Comparison | None = None
    """None where nothing is rolled out."""
    waiting: Mapping[EntryKind, ChangedEntries] = MappingProxyType({})
    """What differs between the next table and the live one."""
    replicas: int = 0


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
@wish_options
@store_options
def rollout(
    decision: str | None, reason: str, by: str, nats_url: str, data_dir: Path, table: str, as_json: bool
) -> int:
    """Say how far a changed table has got: which replicas serve it, how they do, what waits behind it.

    `promote` has all replicas serve it now, also one that the fleet went back from. `back` takes it from the replicas
    that serve it; another change of the objects begins anew.
    """
    if decision is not None:
        decide, request = {"promote": _promote, "back": _go_back}[decision], make_request(by, reason)
        return report_done(
            ask_stores(nats_url, data_dir, lambda stores: decide(stores, table, request)), table, as_json
        )
    if by or reason:
        raise UsageMistake("--by and --reason belong to a decision: headgate rollout promote, or headgate rollout back")
    state = ask_stores(nats_url, data_dir, lambda stores: _read(stores, table))
    if as_json:
        print_json(as_document(state))
    else:
        for line in describe(state):
            click.echo(line)
    return ExitCode.OK


async def _read(stores: Stores, table: str) -> State:
    _, manifest = await current_manifest(stores.snapshots, table)
    current = manifest.rollout
    if current is None:
        return State(table, manifest)
    beats = [beat for beat in await stores.heartbeats.live() if beat.table == table]
    waiting = await _waiting(stores.snapshots, current)
    return State(table, manifest, compare(current, beats), waiting, len({beat.replica for beat in beats}))


async def _waiting(snapshots: SnapshotStore, current: Rollout) -> dict[EntryKind, ChangedEntries]:
    shared = {name.digest for name in current.next} & {name.digest for name in current.live}
    sides = [[name for name in names if name.digest not in shared] for names in (current.next, current.live)]
    return changed_entries(*[await read_chunks(snapshots, names) for names in sides])


async def _promote(stores: Stores, table: str, request: ChangeRequest) -> Done:
    served = await find_image(stores.snapshots, table, "HEAD")
    with told(f"table {table} was not promoted"):
        manifest = await (await _control(stores, table)).promote(request)
    return await finish(stores, served, manifest, "what was rolled out", [])


async def _go_back(stores: Stores, table: str, request: ChangeRequest) -> Done:
    head = await find_image(stores.snapshots, table, "HEAD")
    current = head.manifest.rollout
    served = Image("next", current.next, head.manifest) if current else head
    with told(f"table {table} was not taken back"):
        manifest = await (await _control(stores, table)).go_back(request)
    base = manifest.rollout.base if manifest.rollout else manifest.version
    return await finish(stores, served, manifest, f"the routes of revision {base} everywhere", [])


async def _control(stores: Stores, table: str) -> RolloutControl:
    return RolloutControl(stores.snapshots, table, await greatest_served(stores, table))


def as_document(state: State) -> dict[str, Any]:
    """Return it as JSON data."""
    current = state.manifest.rollout
    if current is None or state.figures is None:
        return {"table": state.table, "revision": str(state.manifest.version), "rollout": None}
    return {
        "table": state.table,
        "revision": str(state.manifest.version),
        "rollout": current.model_dump(mode="json", exclude={"next", "live", "waiting"})
        | {"base": str(current.base), "target": str(current.target), "begun": str(current.begun)},
        "chosen": _side_document(state.figures.chosen),
        "others": _side_document(state.figures.others),
        "waiting": {kind: changed.model_dump(mode="json") for kind, changed in state.waiting.items()},
    }


def _side_document(side: Side) -> dict[str, Any]:
    return {
        "replicas": [*side.replicas],
        "changed": _counts_document(side.changed),
        "all": _counts_document(side.all),
    }


def _counts_document(counts: TrafficCounts) -> dict[str, float | None]:
    percentile = percentile_ms(counts)
    known = None if percentile == inf else percentile
    return {"requests": counts.requests, "errors": counts.errors, "p95_ms": known}


def describe(state: State) -> Iterator[str]:
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
