"""What gateways of a shard find entries to refer to, against all tables that are written down."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from headgate.common.plugins.config import PluginConfig
from headgate.common.table import ENTRIES, entry_key, entry_kind
from headgate.common.table_image import encode_entry
from headgate.gateway.table.shards.part import REFERRING_FIELDS, references_of
from headgate.translator.offline import translate_all
from unit.translator.test_golden import FOLDER, INPUTS, boundaries, classes, read


def texts(value: Any) -> set[str]:
    """All strings in JSON data."""
    if isinstance(value, str):
        return {value}
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return set().union(*map(texts, inner))


@pytest.mark.parametrize("path", INPUTS, ids=lambda path: str(path.relative_to(FOLDER)).removesuffix(".in.yaml"))
def test_every_upstream_and_group_that_an_entry_names_is_found(path: Path) -> None:
    documents = [document for document in yaml.safe_load_all(path.read_text()) if document]
    settings = next((each["classes"] for each in documents if "classes" in each), {})
    entries = translate_all(read(documents), classes(settings), boundaries(documents)).entries
    for kind in ("upstreams", "backend_groups"):
        keys = {entry_key(entry) for entry in entries if entry_kind(entry) == kind}
        for entry in entries:
            if entry_kind(entry) in ("upstreams", "certificates"):
                continue
            named = keys & texts(entry.model_dump(mode="json", exclude={"key"}))
            assert named <= {key for of, key in references_of(encode_entry(entry)) if of == kind}


def configurations(model: type[PluginConfig] = PluginConfig) -> set[type[PluginConfig]]:
    return {model}.union(*map(configurations, model.__subclasses__()))


def test_plugins_name_upstreams_and_groups_in_fields_that_are_looked_for() -> None:
    fields = {
        name
        for model in configurations()
        for name, field in model.model_fields.items()
        if (name.startswith("upstream") or name == "group") and field.annotation in (str, str | None)
    }
    assert fields == REFERRING_FIELDS.keys()


def test_keys_are_read_as_they_were_written() -> None:
    raw = b'{"a":"x \\"upstream\\":\\"no\\"","backends":[{"upstream":"c/n/\\u00e4:80"},{"group":"g\\"1"}]}'
    assert list(references_of(raw)) == [("upstreams", "c/n/ä:80"), ("backend_groups", 'g"1')]
    assert {"upstreams", "backend_groups"} <= ENTRIES.keys()
