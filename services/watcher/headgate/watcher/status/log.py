"""Statuses of objects from manifests: files have no status, so what is wrong with an object goes to the log."""

import logging
from collections.abc import Callable, Mapping

from headgate.common.problems import Problem, Severity
from headgate.common.resources import ObjectRef
from headgate.common.status import StatusUpdate, in_table
from headgate.common.stores import StatusBoard

_log = logging.getLogger(__name__)


class StatusLog:
    """Says of every object, in one line, what is wrong with it, and when it no longer is."""

    def __init__(self, board: StatusBoard, cluster: str, locate: Callable[[ObjectRef], str]) -> None:
        """Prepare; `run` does the work.

        Args:
            board: what the translator says.
            cluster: whose objects are meant.
            locate: file and line of an object; empty for one that is not there (any more).
        """
        self._board, self._cluster, self._locate = board, cluster, locate
        self._problems: dict[tuple[ObjectRef, str], tuple[Problem, ...]] = {}
        """By object and table."""

    @property
    def problems(self) -> Mapping[ObjectRef, tuple[Problem, ...]]:
        """What is wrong at present in any table, by object."""
        found: dict[ObjectRef, dict[Problem, None]] = {}
        for (ref, _), problems in self._problems.items():
            if self._locate(ref):
                found.setdefault(ref, {}).update(dict.fromkeys(problems))
        return {ref: tuple(problems) for ref, problems in found.items()}

    async def run(self) -> None:
        """Follow the board for ever."""
        async for update in self._board.follow(self._cluster):
            self._note(update)

    def _note(self, update: StatusUpdate) -> None:
        key = update.ref, update.table
        before = self._problems.pop(key, ())
        problems = tuple(problem for problem in update.problems if problem.severity is not Severity.INFO)
        if problems:
            self._problems[key] = problems
        where = self._locate(update.ref)
        if not where or before == problems:
            return
        what = f"{where}: {in_table(update.table, f'{update.kind} {update.ref.namespace}/{update.ref.name}')}"
        if problems:
            is_error = any(problem.severity is Severity.ERROR for problem in problems)
            texts = "; ".join(map(str, problems))
            _log.log(logging.ERROR if is_error else logging.WARNING, "%s: %s", what, texts)
        else:
            _log.info("%s: nothing is wrong any more", what)
