"""An audit as one HTML page that needs nothing besides itself: by annotation and by object, sortable and searchable."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from html import escape
from typing import Final

from headgate.cli.offline.auditing import AuditReport, Line, verdicts
from headgate.operations.wording import count_of
from headgate.translator.manifests.verdicts import Verdict

_STYLE: Final = """
:root { color-scheme: light dark; --line: #8884; --soft: #8882 }
body { font: 15px/1.45 system-ui, sans-serif; margin: 2rem auto; max-width: 75rem; padding: 0 1rem }
table { border-collapse: collapse; width: 100%; margin: 1rem 0 2.5rem }
th, td { text-align: left; vertical-align: top; padding: .35rem .6rem; border-bottom: 1px solid var(--line) }
th button { all: unset; cursor: pointer; font-weight: 600 }
th button:focus-visible { outline: 2px solid }
th[aria-sort=ascending] button::after { content: " \\2191" }
th[aria-sort=descending] button::after { content: " \\2193" }
td.number { text-align: right }
code { font-size: .92em; overflow-wrap: anywhere }
.verdict { border-radius: .3rem; padding: .05rem .45rem; background: var(--soft); white-space: nowrap }
.refused { background: #c33; color: #fff }
.ignored { background: #e3a008; color: #000 }
.approximated { background: #3b82f6; color: #fff }
.honoured { background: #15803d; color: #fff }
.open { color: #c33; font-weight: 600 }
input { font: inherit; padding: .3rem .5rem; width: 22rem; max-width: 100% }
"""
_SCRIPT: Final = """
for (const button of document.querySelectorAll("th button")) button.addEventListener("click", () => {
  const head = button.parentElement, body = head.closest("table").tBodies[0], at = head.cellIndex;
  const down = head.getAttribute("aria-sort") === "ascending";
  for (const other of head.parentElement.cells) other.removeAttribute("aria-sort");
  head.setAttribute("aria-sort", down ? "descending" : "ascending");
  const key = row => row.cells[at].dataset.key ?? row.cells[at].textContent;
  const order = new Intl.Collator(undefined, { numeric: true });
  const rows = [...body.rows].sort((one, other) => order.compare(key(one), key(other)));
  body.append(...(down ? rows.reverse() : rows));
});
document.querySelector("#find").addEventListener("input", event => {
  const wanted = event.target.value.toLowerCase();
  for (const row of document.querySelectorAll("tbody tr")) row.hidden = !row.textContent.toLowerCase().includes(wanted);
});
"""
_WORST_FIRST: Final = (Verdict.REFUSED, Verdict.IGNORED, Verdict.APPROXIMATED, Verdict.HONOURED)


def write_audit_page(report: AuditReport, summary: Sequence[Line], at: datetime) -> str:
    """Return the page of an audit that was made at a time."""
    counts = ", ".join(f"{number} {verdict}" for verdict, number in verdicts(report.found).items())
    lost = sum(any(said.lets_in for said in one.said) for one in report.found)
    parts = [
        "<!doctype html>\n<html lang=en><head><meta charset=utf-8><title>headgate audit</title>",
        '<meta name=viewport content="width=device-width">',
        f"<style>{_STYLE}</style></head><body>\n<h1>What becomes of annotations and fields</h1>\n",
        f"<p>{count_of(len(report.found), 'object')}: {escape(counts)}. Made on {at:%Y-%m-%d at %H:%M} UTC.</p>\n",
        f"<p class=open>{count_of(lost, 'object')} would let in requests that are kept out now.</p>\n" if lost else "",
        *_unread(report),
        "<p><label>Find <input id=find type=search></label></p>\n",
        *_table("By annotation and field", ("verdict", "objects", "what", "how or why"), map(_line, summary)),
        *_table("By object", ("verdict", "object", "what", "how or why", "where"), _objects(report)),
        f"<script>{_SCRIPT}</script></body></html>\n",
    ]
    return "".join(parts)


def _unread(report: AuditReport) -> Iterator[str]:
    told = [str(one) for one in report.unreadable] + [f"{one.kind}: {one.message}" for one in report.forbidden]
    if told:
        yield "<p class=open>Not read:</p>\n<ul>" + "".join(f"<li>{escape(one)}</li>" for one in told) + "</ul>\n"


def _table(title: str, heads: Iterable[str], rows: Iterable[str]) -> Iterator[str]:
    yield f"<h2>{escape(title)}</h2>\n<table><thead><tr>"
    yield from (f"<th scope=col><button>{escape(head)}</button></th>" for head in heads)
    yield "</tr></thead><tbody>\n"
    yield from rows
    yield "</tbody></table>\n"


def _line(line: Line) -> str:
    mark = _verdict(line.verdict, lets_in=bool(line.lets_in))
    return f"<tr>{mark}<td class=number>{line.objects}</td>{_code(line.name)}{_cell(line.note)}</tr>\n"


def _objects(report: AuditReport) -> Iterator[str]:
    for one in report.found:
        place = f"{one.file}:{one.line}" if one.file else ""
        for said in one.said:
            cells = f"{_cell(one.object)}{_code(said.name)}{_cell(said.note)}{_cell(place)}"
            yield f"<tr>{_verdict(said.verdict, lets_in=said.lets_in)}{cells}</tr>\n"


def _verdict(verdict: Verdict, *, lets_in: bool) -> str:
    key = f"{_WORST_FIRST.index(verdict)}{int(not lets_in)}"
    return f"<td data-key={key}><span class='verdict {verdict}'>{verdict}{' !' if lets_in else ''}</span></td>"


def _code(text: str) -> str:
    return f"<td><code>{escape(text)}</code></td>"


def _cell(text: str) -> str:
    return f"<td>{escape(text)}</td>"
