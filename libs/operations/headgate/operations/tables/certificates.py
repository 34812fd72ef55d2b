"""The certificates of a table: when they end, and which hosts they are presented for."""

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from headgate.common.table import Certificate, TableEntry
from headgate.operations.tables.expiry import time_left


class CertificateLine(NamedTuple):
    """One certificate."""

    secret: str
    """`NAMESPACE/NAME`."""
    cluster: str
    hosts: tuple[str, ...]
    """Server names that it is presented for."""
    not_after: str
    """RFC 3339; empty: not known."""
    left: timedelta | None
    """Negative after its end."""


def lines_of(entries: Iterable[TableEntry], now: datetime) -> list[CertificateLine]:
    """Return the lines of a table, the certificate that ends first on top, unknown ends last."""
    lines = [
        CertificateLine(
            secret=f"{one.provenance.namespace}/{one.provenance.name}",
            cluster=one.provenance.cluster,
            hosts=one.shown_names,
            not_after=one.not_after,
            left=time_left(one, now),
        )
        for one in entries
        if isinstance(one, Certificate)
    ]
    return sorted(lines, key=lambda line: (line.left is None, line.left or timedelta(), line.cluster, line.secret))


def as_document(line: CertificateLine) -> dict[str, Any]:
    """Return a line as JSON data."""
    known = {name: value for name, value in line._asdict().items() if name != "left"}
    return {**known, "left_s": None if line.left is None else int(line.left.total_seconds())}
