from pathlib import Path

import pytest

from headgate.gateway.plugins.built_in.catalogue import BUILT_IN
from headgate.gateway.plugins.reference import render, replaced

DOCUMENT = Path(__file__).parents[5] / "docs" / "plugins.md"


def test_tables_are_current() -> None:
    text = DOCUMENT.read_text()
    assert replaced(text) == text, "run: python -m headgate.gateway.plugins.reference docs/plugins.md"


def test_every_field_of_every_plugin_is_there() -> None:
    rendered = render()
    for name, kind in BUILT_IN.items():
        section = rendered.partition(f"### {name}\n")[2].partition("\n### ")[0]
        assert section
        assert [
            field for field, info in kind.Config.model_fields.items() if f"| `{info.alias or field}` |" not in section
        ] == []


def test_document_without_marks_is_refused() -> None:
    with pytest.raises(ValueError, match="fields"):
        replaced("# Plugins\n")
