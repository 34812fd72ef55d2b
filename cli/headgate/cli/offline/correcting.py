"""Findings with the line of their field, and with that line as it would probably be right."""

from collections.abc import Iterable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import Final

from headgate.cli.offline.findings import Finding
from headgate.operations.status.corrections import correct
from headgate.watcher.sources.manifests.field_places import FieldPlace, find_field, lines_of

_MAX_LINE: Final = 200
_SECRET: Final = "Secret "
_MAX_PLACED: Final = 2000
"""Findings whose fields are looked for: it takes the file's text each time."""


def place(findings: Iterable[Finding]) -> Iterator[Finding]:
    """Yield findings with the lines of their fields, as far as they stand in readable files."""
    for number, finding in enumerate(findings):
        text = _read(finding.file) if number < _MAX_PLACED else ""
        if not text or not finding.line or not finding.problem.field:
            yield finding
            continue
        where = find_field(text, finding.line, finding.problem.field)
        written, corrected = _shown(text, finding, where)
        yield finding._replace(field_line=where.line, written=written, corrected=corrected)


def _shown(text: str, finding: Finding, where: FieldPlace) -> tuple[str, str]:
    """Return the line and the corrected line, where something can be suggested, and no secret is shown by it."""
    correction = correct(finding.problem)
    if correction is None or not where.is_exact or finding.object.startswith(_SECRET):
        return "", ""
    span = where.name if correction.is_name else where.value
    line = lines_of(text)[span.line - 1].splitlines()[0] if span is not None else ""
    if span is None or len(line) > _MAX_LINE:
        return "", ""
    return line, f"{line[: span.begin]}{correction.text}{line[span.end :]}"


@lru_cache(maxsize=4)
def _read(file: str) -> str:
    try:
        return Path(file).read_text(encoding="utf-8")
    except (OSError, ValueError):
        return ""
