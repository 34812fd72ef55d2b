"""Dashboards and alerts take names of routes and upstreams apart: right for all names that translation makes."""

import re
from collections.abc import Iterator
from functools import cache

import pytest
import yaml

from headgate.common.table import Upstream, VirtualHost
from headgate.common.table.hosts import HostKey
from headgate.common.table.upstream_key import UpstreamKey
from headgate.translator.offline import translate_all
from unit.deploy.test_dashboards_and_alerts import DASHBOARDS, QUERIES
from unit.translator.test_golden import INPUTS, boundaries, classes, read

_CALL = re.compile(r'"(\w+)", "\$1", "(\w+)", "((?:[^"\\]|\\.)*)"')
PATTERNS = {call for _, text, _ in QUERIES for call in _CALL.findall(text)}
"""Label that is made, label that it is made of, and how, of all queries."""


@cache
def names() -> list[dict[str, str]]:
    """What the labels `route` and `upstream` have, and what is in them."""
    return [*_names()]


def _names() -> Iterator[dict[str, str]]:
    for path in INPUTS:
        documents = [each for each in yaml.safe_load_all(path.read_text()) if each]
        settings = next((each["classes"] for each in documents if "classes" in each), {})
        for entry in translate_all(read(documents), classes(settings), boundaries(documents)).entries:
            if isinstance(entry, VirtualHost):
                host = HostKey.read(entry.key).host
                for route in entry.routes:
                    where = route.provenance
                    yield {
                        "route": f"{entry.key}|{route.name}",
                        "host": host,
                        "owner": where.namespace,
                        "origin": where.cluster,
                    }
            elif isinstance(entry, Upstream):
                yield {"upstream": entry.key, "origin": UpstreamKey.parse(entry.key).cluster}


@pytest.mark.parametrize("pattern", sorted(PATTERNS), ids=" ".join)
def test_a_label_is_made_right_of_every_name(pattern: tuple[str, str, str]) -> None:
    made, source, how = pattern
    expression = re.compile(how.replace("\\\\", "\\"))
    found = [one for one in names() if source in one]
    assert found
    for one in found:
        match = expression.fullmatch(one[source])
        assert match is not None, one
        assert match[1] == one[made]


def test_what_is_counted_together_has_no_host() -> None:
    for made, source, how in PATTERNS:
        if source == "route":
            assert not re.fullmatch(how.replace("\\\\", "\\"), "other"), made


@pytest.mark.parametrize(
    ("board", "variable", "label"),
    [
        ("headgate-hosts.json", "host", "host"),
        ("headgate-hosts.json", "namespace", "owner"),
        ("headgate-clusters.json", "origin", "origin"),
    ],
)
def test_a_variable_of_a_dashboard_offers_what_is_there(board: str, variable: str, label: str) -> None:
    (found,) = (one for one in DASHBOARDS[board]["templating"]["list"] if one["name"] == variable)
    source = found["definition"].rpartition(", ")[2].removesuffix(")")
    expression = re.compile(found["regex"].removeprefix("/").removesuffix("/"))
    for one in names():
        if source in one:
            match = expression.search(one[source])
            assert match is not None, one
            assert match[1] == one[label]
