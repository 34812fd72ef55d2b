"""The gateway's own listeners: what the operator's settings say of one counts, and of the rest what the oldest object
does.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from headgate.common.problems import Problem
from headgate.common.resources import ObjectRef
from headgate.common.table import Listener
from headgate.translator.assembly.entry_listeners import listeners_on
from headgate.translator.fragments.fragment import Fragment, Identity, StreamPort
from headgate.translator.fragments.seniority import describe, seniority_of

_OF_ALL: Final = frozenset(("key", "protocol", "provenance"))
"""Fields that say nothing."""


class OwnListeners:
    """What objects say of the own listeners, and who hears that it does not count."""

    def __init__(self, settings: Iterable[Listener] = ()) -> None:
        """Begin with what settings say."""
        self._settings: Mapping[str, Listener] = {each.key: each for each in settings}
        self._speakers: dict[ObjectRef, Fragment] = {}
        self.entries: Mapping[str, Listener] = dict(self._settings)
        self.lost: Mapping[ObjectRef, tuple[Problem, ...]] = {}

    def replace(self, ref: ObjectRef, fragment: Fragment | None) -> bool:
        """Take an object's contribution in place of the one before; return whether it says, or said, something."""
        if fragment is not None and fragment.own_listeners:
            self._speakers[ref] = fragment
        elif self._speakers.pop(ref, None) is None:
            return False
        self._award()
        return True

    def ports_of(self, keys: Iterable[str]) -> Iterator[StreamPort]:
        """Yield the ports of some listeners."""
        yield from ports_of(self.entries[key] for key in keys if key in self.entries)

    def on_port(self, port: StreamPort, *, is_tls: bool) -> frozenset[str]:
        """Return the keys of the listeners that have connections of a port: plain ones, or those over TLS."""
        return listeners_on(port, self.entries.values(), is_tls=is_tls)

    def _award(self) -> None:
        """Decide what counts. Objects that say the same agree, whatever their age."""
        won: dict[str, tuple[Listener, Identity | None]] = {key: (each, None) for key, each in self._settings.items()}
        lost: dict[ObjectRef, tuple[Problem, ...]] = {}
        for fragment in sorted(self._speakers.values(), key=lambda each: each.identity.seniority):
            identity = fragment.identity
            rivals = []
            for listener in fragment.own_listeners:
                settings = self._settings.get(listener.key)
                together = _together(settings, listener)
                entry, owner = won.get(listener.key, (listener, identity))
                if together is None:
                    rivals.append(_lost(listener, identity, None))
                elif owner in (None, identity):
                    won[listener.key] = together, identity
                elif entry.model_copy(update={"provenance": listener.provenance}) != together:
                    rivals.append(_lost(listener, identity, owner))
            if rivals:
                lost[identity.ref] = tuple(rivals)
        self.entries, self.lost = {key: entry for key, (entry, _) in won.items()}, lost


def _said(listener: Listener) -> dict[str, object]:
    return {name: getattr(listener, name) for name in listener.model_fields_set - _OF_ALL}


def _together(settings: Listener | None, listener: Listener) -> Listener | None:
    """Return what settings and an object say of a listener; None: they say different things of one field."""
    if settings is None:
        return listener
    both, said = _said(settings), _said(listener)
    if any(both.get(name, value) != value for name, value in said.items()):
        return None
    return listener.model_copy(update=both)


def ports_of(listeners: Iterable[Listener]) -> Iterator[StreamPort]:
    """Yield the ports of listeners that are not the gateways' own ones."""
    yield from (StreamPort(False, each.port) for each in listeners if each.port)


def _lost(listener: Listener, loser: Identity, owner: Identity | None) -> Problem:
    if owner is None:
        message = (
            f"the setting entrypoints says how clients' connections on the gateways' {listener.key} port are treated"
        )
        return Problem(reason="ListenerConflict", field="data", message=f"{message}; say it there alone")
    return Problem(
        reason="ListenerConflict",
        field="data",
        message=f"clients' connections on the gateways' {listener.key} port are treated as {describe(owner)} says, "
        f"{seniority_of(owner, loser)}; say the same in both, or in one only",
    )
