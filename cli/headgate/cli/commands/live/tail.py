"""`headgate tail`: finished requests of all gateways, as they come."""

import asyncio
import json
import re
import uuid
from collections.abc import Iterator, Sequence
from contextlib import aclosing, suppress
from datetime import UTC, datetime
from pathlib import Path

import click
import msgspec

from headgate.cli.commands.live.hearing import beside
from headgate.cli.running.store import ask_stores, store_options
from headgate.cli.terminal.errors import UsageMistake
from headgate.cli.terminal.group import TeachingCommand
from headgate.common.errors import StoreUnavailable
from headgate.common.stores.opening import Stores
from headgate.common.traffic import TAP_S, Tap, TappedRequest, TrafficSummary

_STATUS = re.compile(r"([1-5])xx|[1-5]\d\d|0")
_SLOW = re.compile(r"(\d+(?:\.\d+)?)(ms|s)")


@click.command(
    cls=TeachingCommand,
    examples=[
        "headgate tail --status 5xx                  # what fails now",
        "headgate tail --host shop.example --slower 250ms",
        "headgate tail --client 192.0.2.7 --path /login",
        "headgate tail --share 0.01 --json | jq -r .route",
        "headgate tail --limit 1 --request-id 846cffa4cd13923134a5fac71ab60000",
    ],
    read_more="docs/top.md",
)
@click.option("--host", default="", show_default=False, metavar="HOST", help="Only requests for this host.")
@click.option("--route", default="", show_default=False, metavar="TEXT", help="Only of routes with this in their name.")
@click.option("--path", default="", show_default=False, metavar="PREFIX", help="Only of paths that begin with this.")
@click.option(
    "--status", "statuses", multiple=True, metavar="CODE", help="Only these: 404, 5xx, or 0 for none; repeatable."
)
@click.option("--client", default="", show_default=False, metavar="ADDRESS", help="Only of this client.")
@click.option(
    "--slower", default="", show_default=False, metavar="TIME", help="Only those that took longer: 250ms, 2s."
)
@click.option("--request-id", default="", show_default=False, metavar="ID", help="Only the request with this id.")
@click.option("--share", type=click.FloatRange(0, 1), default=1.0, metavar="SHARE", help="Only this share, drawn.")
@click.option("--limit", type=click.IntRange(1), default=None, metavar="N", help="End after so many.")
@store_options
def tail(
    host: str,
    route: str,
    path: str,
    statuses: tuple[str, ...],
    client: str,
    slower: str,
    request_id: str,
    share: float,
    limit: int | None,
    nats_url: str,
    data_dir: Path,
    table: str,
    as_json: bool,
) -> None:
    """Print finished requests of all gateways, within a second, until Ctrl-C.

    Gateways begin to look when this begins, so that it shows no past requests. Each worker tells 100 a second at most;
    how many more there were is said. Queries of URLs are not told, as they may hold credentials.
    """
    tap = Tap(
        id=uuid.uuid4().hex,
        host=host.lower(),
        route=route,
        path=path,
        statuses=_statuses(statuses),
        client=client,
        request_id=request_id,
        slower_than_s=_seconds(slower),
        share=share,
    )

    async def follow(stores: Stores) -> None:
        told = 0
        async with aclosing(stores.traffic.listen(table)) as heard:
            async for summary in heard:
                for request in _meant(summary, tap.id):
                    click.echo(json.dumps(_as_document(request)) if as_json else describe(request))
                    told += 1
                    if told == limit:
                        return
                if summary.untold and not as_json:
                    _tell_of_more(summary)

    async def ask(stores: Stores) -> None:
        await beside(_go_on_asking(stores, table, tap), follow(stores))

    ask_stores(nats_url, data_dir, ask, answer_s=None)


def _meant(summary: TrafficSummary, tap: str) -> Iterator[TappedRequest]:
    return (request for request in summary.tapped if tap in request.taps)


def _tell_of_more(summary: TrafficSummary) -> None:
    click.echo(f"... and {summary.untold:,} more of {summary.replica}, worker {summary.worker}", err=True)


async def _go_on_asking(stores: Stores, table: str, tap: Tap) -> None:
    while True:
        with suppress(StoreUnavailable):  # gateways are asked again as soon as there is a connection
            await stores.traffic.tap(table, tap)
        await asyncio.sleep(TAP_S / 2)


def _statuses(words: Sequence[str]) -> tuple[int, ...]:
    found = []
    for word in words:
        match = _STATUS.fullmatch(word.lower())
        if match is None:
            raise UsageMistake(f"--status {word!r}: give a code such as 404, a class such as 5xx, or 0 for no answer")
        found.append(int(match[1] or match[0]))
    return tuple(found)


def _seconds(text: str) -> float:
    match = _SLOW.fullmatch(text)
    if text and match is None:
        raise UsageMistake(f"--slower {text!r}: give a time such as 250ms or 2s")
    return 0.0 if match is None else float(match[1]) / (1000 if match[2] == "ms" else 1)


def describe(request: TappedRequest) -> str:
    """Say in a line what a request was."""
    at = datetime.fromtimestamp(request.at, UTC).astimezone()
    words = [
        f"{at:%H:%M:%S.%f}"[:12],
        f"{request.status:3}",
        f"{request.seconds * 1000:7.1f} ms",
        request.method,
        f"{request.host}{request.path}",
        f"-> {request.endpoint}" if request.endpoint else "-> nothing",
        f"of {request.route}" if request.route else "of no route",
        f"from {request.client}",
        request.request_id,
    ]
    text = " ".join(words)
    shown = f"{text} ({request.reason})" if request.reason else text
    # What a client sent must not move the terminal's cursor.
    return "".join(letter if letter.isprintable() else "?" for letter in shown)


def _as_document(request: TappedRequest) -> dict[str, object]:
    written = {name: value for name, value in msgspec.structs.asdict(request).items() if name != "taps"}
    return {**written, "at": datetime.fromtimestamp(request.at, UTC).isoformat(timespec="milliseconds")}
