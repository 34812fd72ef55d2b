"""What the levels of a location say of answers, as uses of `response-rewrite`.

nginx hides headers of the upstream first, then runs the filters of headers-more in their order, and adds headers last.
"""

import re
from collections.abc import Iterator
from typing import Any, Final, TypeVar

from pydantic import JsonValue

from headgate.common.plugins.traffic.nginx_rewrite import BRANCH, OF_SERVER
from headgate.common.plugins.transformation.response_rewrite import (
    AnswerHeaderChanges,
    BodySubstitution,
    ResponseRewriteConfig,
)
from headgate.common.table import PluginUse
from headgate.translator.snippets.conditions import is_branch, is_type
from headgate.translator.snippets.level import (
    AddedHeader,
    Branch,
    Expires,
    HeaderFilter,
    HiddenHeader,
    Level,
    PassedHeader,
    Substitution,
)

S = TypeVar("S")
_ADDED_TO: Final = ("200", "201", "204", "206", "301", "302", "303", "304", "307", "308")
"""Statuses of answers that `add_header` and `expires` change without `always`."""
_NOT_OF_SERVER: Final[JsonValue] = [BRANCH, "~=", OF_SERVER]
_ANSWER_ORDER: Final = 898
"""Of the last change of an answer; those before it have lesser orders."""


def changes_of_answers(server: Level, location: Level) -> Iterator[PluginUse]:
    """Yield the uses of plugins that change answers, in the order in which they run."""
    return _Answers(server, location).uses()


class _Answers:
    def __init__(self, server: Level, location: Level) -> None:
        self._server = server
        self._location = location
        self._settings = server.settings() | location.settings()
        self._branches = location.of(Branch)

    def uses(self) -> Iterator[PluginUse]:
        """Yield the changes of answers; the first is made first, so it has the least order."""
        changes = _joined([*self._hidden(), *self._substitutions(), *self._filters(), *self._added()])
        for at, (config, conditions) in enumerate(changes):
            written = config.model_copy(update={"vars": tuple(conditions)}) if conditions else config
            use = PluginUse.of(ResponseRewriteConfig.model_validate(written.model_dump(exclude_unset=True)))
            order = _ANSWER_ORDER - len(changes) + 1 + at
            yield use.model_copy(update={"order": order})

    def _hidden(self) -> Iterator["_Change"]:
        passed = {each.name.lower() for each in self._location.of(PassedHeader) or self._server.of(PassedHeader)}
        hidden = self._location.of(HiddenHeader) or self._server.of(HiddenHeader)
        names = tuple(each.name for each in hidden if each.name.lower() not in passed)
        if names:
            yield _answers(remove=names), []

    def _substitutions(self) -> Iterator["_Change"]:
        found = self._location.of(Substitution) or self._server.of(Substitution)
        scope = "once" if self._settings.get("sub_filter.once", True) else "global"
        types = self._settings.get("sub_filter.types", ("text/html",))
        assert isinstance(types, tuple)
        if found:
            filters = tuple(
                BodySubstitution.model_validate(
                    {"regex": re.escape(each.text), "replace": each.replacement, "scope": scope, "options": "i"}
                )
                for each in found
            )
            yield ResponseRewriteConfig(filters=filters), [is_type("sent_http_content_type", types)] if types else []

    def _filters(self) -> Iterator["_Change"]:
        for each in self._server.of(HeaderFilter):
            yield _filter(each, [])
        for each in self._location.of(HeaderFilter):
            yield _filter(each, [_NOT_OF_SERVER] if self._server.steps else [])
        for branch in self._branches:
            for each in branch.level.of(HeaderFilter):
                yield _filter(each, [is_branch(branch.number)])

    def _added(self) -> Iterator["_Change"]:
        """Yield what `add_header` and `expires` add, for each branch what it has of its own, or inherits."""
        for headers, conditions in self._inherited(AddedHeader):
            for each in headers:
                limits: list[JsonValue] = [] if each.always else [["status", "in", list(_ADDED_TO)]]
                yield _answers(add=((each.name, each.value),)), [*conditions, *limits]
        for found, conditions in self._inherited(Expires):
            for expiry in found[-1:]:
                if expiry.seconds is not None:
                    config = ResponseRewriteConfig(expires_s=expiry.seconds)
                elif expiry.constants:
                    config = _answers(set=dict(expiry.constants))
                else:
                    continue
                yield config, [*conditions, ["status", "in", list(_ADDED_TO)]]

    def _inherited(self, kind: type[S]) -> Iterator[tuple[tuple[S, ...], list[JsonValue]]]:
        """Yield what holds outside of the branches that have their own, then what these have."""
        outer = self._location.of(kind)
        own = [(str(branch.number), branch.level.of(kind)) for branch in self._branches if branch.level.of(kind)]
        if outer and self._server.steps:
            own.append((OF_SERVER, self._server.of(kind)))
        outer = outer or self._server.of(kind)
        if outer:
            elsewhere: list[JsonValue] = [branch for branch, _ in own]
            yield outer, [[BRANCH, "!", "in", elsewhere]] if own else []
        for branch, said in own:
            if said:
                yield said, [[BRANCH, "==", branch]]


_Change = tuple[ResponseRewriteConfig, list[JsonValue]]


def _joined(changes: list[_Change]) -> list[_Change]:
    """Put neighbours under the same conditions together, where a removal comes before what is set, and that before
    what is added, as within one use of the plugin.
    """
    joined: list[_Change] = []
    for config, conditions in changes:
        last, same = joined[-1] if joined else (config, None)
        if conditions == same and _last_stage(last) <= _first_stage(config):
            ours, theirs = last.headers, config.headers
            both = _answers(
                remove=(*ours.remove, *theirs.remove), set={**ours.set, **theirs.set}, add=(*ours.add, *theirs.add)
            )
            joined[-1] = both, conditions
        else:
            joined.append((config, conditions))
    return joined


def _stages(config: ResponseRewriteConfig) -> list[int]:
    headers = config.headers
    return [at for at, change in enumerate((headers.remove, headers.set, headers.add)) if change]


def _first_stage(config: ResponseRewriteConfig) -> int:
    """Return the place of the first change of headers; -1 for one that changes something else."""
    return min(_stages(config), default=-1)


def _last_stage(config: ResponseRewriteConfig) -> int:
    return max(_stages(config), default=3)


def _filter(each: HeaderFilter, conditions: list[JsonValue]) -> _Change:
    if each.statuses:
        conditions.append(["status", "in", list(each.statuses)])
    if each.types:
        conditions.append(is_type("sent_http_content_type", each.types))
    return _answers(remove=each.removed, set=dict(each.set)), conditions


def _answers(**changes: Any) -> ResponseRewriteConfig:
    given = {name: value for name, value in changes.items() if value}
    return ResponseRewriteConfig(headers=AnswerHeaderChanges.model_validate(given))
