"""`headgate explain`: why a request goes where it goes, asked of a running gateway or of manifests."""

import asyncio
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import SplitResult, urlsplit

import click

from headgate.cli.commands.live.past_request import find_request, print_request
from headgate.cli.offline.class_options import class_options
from headgate.cli.offline.complaints import complaints
from headgate.cli.running.console import server_option
from headgate.cli.running.store import ask_stores, store_options
from headgate.cli.terminal.errors import CommandError, ExitCode, Unreachable, UsageMistake
from headgate.cli.terminal.group import TeachingCommand
from headgate.cli.terminal.rendering import print_json, print_table
from headgate.cli.up.data_dir import read_state
from headgate.operations.errors import StoresUnreachable
from headgate.operations.wording import count_of

if TYPE_CHECKING:
    from headgate.common.table import TableEntry

ASK_S = 10.0
DEFAULT_ADMIN_URL = "http://127.0.0.1:9080"


class _Request(NamedTuple):
    """The request to explain."""

    method: str
    url: SplitResult
    headers: Sequence[tuple[str, str]]
    client: str
    body: str


@click.command(
    cls=TeachingCommand,
    examples=[
        "headgate explain GET http://demo.localhost/red",
        "headgate explain GET http://127.0.0.1:8080/red -H 'Host: demo.localhost'",
        "headgate explain GET 'http://demo.localhost/red?v=2' -H 'Cookie: canary=always' --client 192.0.2.7",
        "headgate explain GET http://demo.localhost/red --manifests examples/quickstart",
        "headgate explain GET http://demo.localhost/red --at 14:03       # by the table of that time",
        "headgate explain --request-id 4bf92f3577b34da6a3ce929d0e0e4736  # one that failed, end to end",
    ],
    read_more="docs/cli.md",
)
@click.argument("method", default="", metavar="METHOD")
@click.argument("url", default="", metavar="URL")
@click.option(
    "--header", "-H", "headers", multiple=True, metavar="'NAME: VALUE'", help="Header of the request; repeatable."
)
@click.option(
    "--client", default="", show_default=False, metavar="ADDRESS", help="Address that the request comes from."
)
@click.option(
    "--data",
    "-d",
    "body",
    default="",
    show_default=False,
    metavar="TEXT",
    help="Body of the request; name its type with -H.",
)
@click.option(
    "--admin-url",
    default="",
    show_default=False,
    metavar="URL",
    help=f"Admin site of the gateway to ask; by default that of a running `up`, or {DEFAULT_ADMIN_URL}.",
)
@click.option(
    *("--manifests",),
    type=click.Path(path_type=Path, exists=True),
    multiple=True,
    metavar="PATH",
    help="Decide by these manifests instead of asking a gateway; repeatable.",
)
@click.option(
    "--revision",
    default="",
    show_default=False,
    metavar="REV",
    help="Decide by the table of a revision: 57, HEAD~1, live, pinned.",
)
@click.option(
    "--at", default="", show_default=False, metavar="WHEN", help="Decide by the table of a time: 14:03, 2h, 2026-01-31."
)
@click.option(
    *("--request-id", "request_id"),
    default="",
    show_default=False,
    metavar="ID",
    help="Explain a request that failed or was refused lately; a console knows it, and says what was tried.",
)
@server_option
@class_options
@store_options
def explain(
    method: str,
    url: str,
    headers: tuple[str, ...],
    client: str,
    body: str,
    admin_url: str,
    manifests: tuple[Path, ...],
    revision: str,
    at: str,
    request_id: str,
    server: str,
    class_flags: list[str],
    nats_url: str,
    data_dir: Path,
    table: str,
    as_json: bool,
) -> int:
    """Say which route takes a request, which others lost and why, and which backends it is sent to.

    It asks a gateway, by default that of a `headgate up` on this machine. With --manifests it decides by files: these
    flags say which objects are ours, and HEADGATE_* variables and the TOML file in HEADGATE_CONFIG have the gateway's
    settings for paths. A path with dot segments, several slashes or escapes is read as the gateway reads it.

    Plugins that decide by the request and consumers are run, in their order. For the others the answer says why their
    verdict cannot be known. A gateway also says which endpoints are unhealthy or ejected, and which requests failed.

    With --revision or --at it decides by a table of the past, without the health of endpoints. If the NATS server of
    `up` or of --nats-url answers, problems of objects that ask for the host and the path are printed too.

    With --request-id it says what became of a request that failed, or that a gateway refused: the endpoints that were
    tried, the answer, and why; then what would become of it now. A console keeps some thousands of them.

    The exit code is 1 if no route takes the request, a plugin refuses it, or its backends cannot answer.
    """
    from headgate.gateway.table.explaining.explanation import Explanation

    if class_flags and not manifests:
        raise UsageMistake(f"{class_flags[0].partition('=')[0]} belongs to --manifests: a gateway has decided already")
    if sum(map(bool, (manifests, revision, at))) > 1:
        raise UsageMistake("--manifests, --revision and --at exclude each other")
    if "/" in method:
        raise UsageMistake(f"the method goes before the URL: headgate explain {url} {method}")
    past = None
    if request_id:
        if method or manifests:
            raise UsageMistake("--request-id says which request: leave METHOD, URL and --manifests out")
        past = find_request(request_id, server, nats_url, data_dir, table)
        if not as_json:
            print_request(past)  # before anything else is asked: from afar no gateway may answer
        scheme = past.get("scheme", "http")  # consoles of earlier releases do not say it
        method, url, client = past["method"], f"{scheme}://{past['host']}{past['path']}", client or past["client"]
    elif not url:
        raise UsageMistake("say which request: headgate explain METHOD URL, or --request-id ID")
    request = _Request(method, _parse_url(url), [_parse_header(text) for text in headers], client, body)
    if manifests:
        explanation, notes = _explain_offline(manifests, class_flags, request)
    elif revision or at:
        explanation, notes = _explain_past(nats_url, data_dir, table, (revision, at), request), ()
    else:
        site = admin_url or (state.admin_url if (state := read_state(data_dir)) else DEFAULT_ADMIN_URL)
        explanation = Explanation.model_validate(asyncio.run(_ask(site, request)))
        notes = _complaints(nats_url, data_dir, table, explanation)
    if as_json:
        objects = [note.as_json() for note in notes if hasattr(note, "as_json")]
        said = {"request": past} if past is not None else {}
        print_json({**said, **explanation.model_dump(mode="json"), "objects": objects})
    else:
        print_explanation(explanation)
        for note in notes:
            click.echo(str(note))
    return ExitCode.OK if _is_answered(explanation) else ExitCode.NEGATIVE


def _parse_url(text: str) -> SplitResult:
    try:
        url = urlsplit(text if "://" in text else f"http://{text}")
    except ValueError:  # brackets that are no IPv6 address
        url = urlsplit("")
    if url.scheme not in ("http", "https") or not url.netloc:
        raise UsageMistake(f"{text!r} is not a URL: expected http://HOST/PATH")
    return url


def _parse_header(text: str) -> tuple[str, str]:
    name, colon, value = text.partition(":")
    if not colon or not name.strip():
        raise UsageMistake(f"-H {text!r}: expected 'NAME: VALUE'")
    return name.strip(), value.strip()


def _explain_offline(
    manifests: tuple[Path, ...], class_flags: list[str], request: _Request
) -> tuple[Any, Sequence[object]]:
    """Return the explanation, and what is said of objects with problems, or that are not ours."""
    from headgate.cli.offline.tables import translate_paths

    table = translate_paths(manifests, class_flags)
    explanation = _explain_by(table.entries, "manifests", request)
    found = complaints(explanation, map(table.suspect, table.findings))
    return explanation, [*found, *(table.notes if explanation.winner is None else ())]


def _explain_past(nats_url: str, data_dir: Path, table: str, when: tuple[str, str], request: _Request) -> Any:
    """Explain by the table of a revision, named or as the newest at a time."""
    from headgate.operations.tables.past import read_past

    past = ask_stores(nats_url, data_dir, lambda stores: read_past(stores.snapshots, table, *when))
    return _explain_by(past.entries, past.label, request)


def _complaints(nats_url: str, data_dir: Path, table: str, explanation: Any) -> Sequence[object]:
    """Return what is wrong with objects that ask for host and path; a line instead if the stores cannot be asked."""
    from headgate.operations.status.reading_suspects import read_suspects

    try:
        suspects = ask_stores(nats_url, data_dir, lambda stores: read_suspects(stores, table))
    except (Unreachable, StoresUnreachable) as error:
        return () if explanation.winner else (f"objects with errors are not named here: {error}",)
    return complaints(explanation, suspects)


def _explain_by(entries: "Iterable[TableEntry]", label: str, request: _Request) -> Any:
    """Explain by entries at hand, with this machine's settings of a gateway."""
    from headgate.common.service.settings import load_settings
    from headgate.gateway.settings import GatewaySettings
    from headgate.gateway.table.explaining.explain import explain as explain_by
    from headgate.gateway.table.view import EntryView

    url, settings = request.url, load_settings(GatewaySettings, [], program="headgate gateway", summary="")
    return explain_by(
        EntryView(entries, version_label=label),
        request.method,
        url.netloc.rpartition("@")[2],
        f"{url.path or '/'}?{url.query}",
        request.headers,
        scheme=url.scheme,
        client=request.client,
        body=request.body.encode(),
        path_normalization=settings.path_normalization,
        preview=_preview,
        own_ports=settings.own_ports,
    )


def _preview(route: Any, facts: Any, scope: str) -> Sequence[Any]:
    if not route.plugins:
        return ()
    from headgate.gateway.plugins.runtime.preview import (
        preview_plugins,  # with all plugins, and the clients that they need
    )

    verdicts: Sequence[Any] = preview_plugins(route, facts, scope)
    return verdicts


async def _ask(admin_url: str, request: _Request) -> Any:
    import aiohttp

    query = [("method", request.method), ("url", request.url.geturl())]
    query += [("header", f"{name}: {value}") for name, value in request.headers]
    query += [(name, value) for name, value in (("client", request.client), ("body", request.body)) if value]
    try:
        async with (
            aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=ASK_S)) as session,
            session.get(f"{admin_url.rstrip('/')}/explain", params=query) as answer,
        ):
            if answer.status != 200:
                raise CommandError(f"{admin_url} answered {answer.status}: {(await answer.text()).strip()[:200]}")
            return await answer.json()
    except (aiohttp.ClientError, TimeoutError, ValueError) as error:
        raise Unreachable(
            f"no gateway answers at {admin_url}: start one, give --admin-url URL, or ask files with --manifests PATH"
        ) from error


def _is_answered(explanation: Any) -> bool:
    from headgate.gateway.plugins.runtime.verdicts import first_answer

    if (answer := first_answer(explanation.plugins)) is not None:
        return answer.status < 400
    return explanation.winner is not None and any(not backend.unavailable for backend in explanation.backends)


def print_explanation(explanation: Any) -> None:
    """Print what becomes of a request."""
    click.echo(f"{explanation.method} {explanation.host}{explanation.path}   (table {explanation.version})")
    if explanation.read_path:
        click.echo(f"read as {explanation.read_path}, forwarded as {explanation.forwarded_path or explanation.path}")
    if explanation.listener not in ("", "http", "https"):
        click.echo(f"on listener {explanation.listener}")
    click.echo(click.style(explanation.verdict, bold=True))
    if explanation.candidates:
        click.echo()
        _print_candidates(explanation.candidates)
    if explanation.plugins:
        click.echo()
        print_table(("PLUGIN", "VERDICT", "WHY"), map(_plugin_row, explanation.plugins))
    for backend in explanation.backends:
        click.echo()
        ready = sum(endpoint.gets_requests for endpoint in backend.endpoints)
        told = backend.unavailable or f"{ready} of {count_of(len(backend.endpoints), 'endpoint')} get requests"
        click.echo(f"{backend.upstream or 'no upstream'} ({backend.share:.0%}{_way_to(backend)}): {told}")
        for endpoint in backend.endpoints:
            click.echo(f"  {endpoint.address}:{endpoint.port} {', '.join(_facts(endpoint, backend.endpoints))}")
    for mirror in explanation.mirrors:
        lost = f": {mirror.unavailable}" if mirror.unavailable else ""
        click.echo(f"\ncopies of {mirror.share:.0%} go to {mirror.target}{lost}")


def _way_to(backend: Any) -> str:
    """Say by which groups, and through which plugins of its own, a backend is reached."""
    groups = f", {backend.role or 'by weight'} in group {' > '.join(backend.groups)}" if backend.groups else ""
    plugins = f", with {', '.join(map(_short, backend.plugins))}" if backend.plugins else ""
    return groups + plugins


def _short(plugin: Any) -> str:
    name, verdict, why = _plugin_row(plugin)
    return f"{name} ({verdict}: {why})" if plugin.verdict == "answers" else name


def _plugin_row(plugin: Any) -> tuple[str, str, str]:
    verdict = f"answers {plugin.status}" if plugin.verdict == "answers" else plugin.verdict
    return plugin.name, verdict, plugin.detail or "-"


def _facts(endpoint: Any, others: Sequence[Any]) -> Iterator[str]:
    """Yield what is to be known of an endpoint: of weights, ranks and clusters only what tells it from others."""
    yield endpoint.state
    if endpoint.failures:
        yield endpoint.failures
    if endpoint.hop:
        yield f"{endpoint.hop} gateway of {endpoint.cluster}"
    elif len({other.cluster for other in others}) > 1:
        yield f"cluster {endpoint.cluster}"
    if len({other.weight for other in others}) > 1:
        yield f"weight {endpoint.weight}"
    if any(other.priority for other in others):
        yield f"priority {endpoint.priority}"


def _print_candidates(candidates: Sequence[Any]) -> None:
    """Print who won and who lost; with conditions only where some route has one."""
    rows = [
        (
            "wins" if candidate.wins else "-",
            candidate.host,
            candidate.path_type or "",
            candidate.path,
            candidate.condition,
            candidate.reason,
            candidate.provenance or "",
        )
        for candidate in candidates
    ]
    shown = [column for column in range(7) if column != 4 or any(row[column] for row in rows)]
    heads = ("", "HOST", "TYPE", "PATH", "IF", "WHY", "SOURCE")
    print_table(tuple(heads[column] for column in shown), (tuple(row[column] for column in shown) for row in rows))
