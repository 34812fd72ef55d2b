"""No value of an annotation or key of ingress-nginx is more than a mistake of its own object."""

import logging

import pytest

from fakes.translator.deltas import applied, endpoint_slice, ingress, service
from fakes.translator.nginx import ADOPTED, NGINX_CLASS, classed, options
from headgate.translator.annotations.nginx import NGINX_PREFIX, NGINX_TABLE
from headgate.translator.annotations.nginx.options import OPTIONS
from headgate.translator.composition import DIALECTS
from headgate.translator.translation import Translation

VALUES = (
    "-1", "0", "1.5", "9" * 30, "NaN", "x" * 5000, "a b", "a\nb", "é", "٣", "/$9", "//", "http://[", "https://x:99999/",
    "~(", "~" + "x" * 2000, "*", "${", "127.0.0.1/99", "999", "-1k", "99999999g", "200 99999999d", "CN=(", ",", "{",
)  # fmt: skip


def translated(*manifests: object, caplog: pytest.LogCaptureFixture) -> tuple[int, list[str]]:
    """Return the number of hosts, and what was said of errors of ours."""
    translation = Translation(DIALECTS, ADOPTED)
    translation.activate("a")
    with caplog.at_level(logging.ERROR):
        for manifest in (NGINX_CLASS, service("one"), endpoint_slice("one", "10.0.0.1"), *manifests):
            translation.apply(applied(manifest))
        for _ in translation.settle():
            pass
    errors = [record.getMessage() for record in caplog.records if "internal error" in record.getMessage()]
    return sum(chunk.kind == "hosts" for chunk in translation.assembly.image.chunks()), errors


@pytest.mark.parametrize("value", VALUES, ids=range(len(VALUES)))
def test_annotations(value: str, caplog: pytest.LogCaptureFixture) -> None:
    manifests = []
    for number, name in enumerate(NGINX_TABLE.rows):
        made = classed(f"web-{number}", host=f"h{number}.example")
        made["metadata"]["annotations"] = {f"{NGINX_PREFIX}{name}": value}
        manifests.append(made)
    hosts, errors = translated(*manifests, classed("good"), caplog=caplog)
    assert hosts > 0
    assert errors == []


@pytest.mark.parametrize("value", VALUES, ids=range(len(VALUES)))
def test_keys(value: str, caplog: pytest.LogCaptureFixture) -> None:
    told, own = {**options(), "data": dict.fromkeys(OPTIONS.rows, value)}, ingress("own", class_name="headgate")
    hosts, errors = translated(told, classed(), own, caplog=caplog)
    assert hosts > 0
    assert errors == []
