"""Markdown tables."""

from collections.abc import Sequence


def table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table, aligned so that it reads well as text too; all columns but the first to the right."""
    widths = [max(len(cell) for cell in column) for column in zip(heads, *rows, strict=True)]

    def line(cells: Sequence[str]) -> str:
        padded = (
            cell.rjust(width) if column else cell.ljust(width)
            for column, (cell, width) in enumerate(zip(cells, widths, strict=True))
        )
        return "| " + " | ".join(padded) + " |"

    rule = (
        "|"
        + "|".join(("-" * (width + 1) + ":") if column else "-" * (width + 2) for column, width in enumerate(widths))
        + "|"
    )
    return "\n".join([line(heads), rule, *(line(row) for row in rows)])
