"""Asking a running translator what manifests would change: it has the world in memory."""

from collections.abc import Sequence

from headgate.cli.offline.proposals import TablePlan, Verdicts, known_of, locate, propose, remarks_on
from headgate.common.bus.planning import ask_for_plan
from headgate.common.deltas import ClusterAnnouncement
from headgate.common.errors import NoAnswer, TooLarge
from headgate.common.planning import MAX_OBJECTS, PlanBasis, PlanOutcome, PlanQuestion, encode
from headgate.common.release import release
from headgate.common.snapshot import Manifest
from headgate.common.stores.opening import Stores
from headgate.watcher.sources.manifests.files import FileObject


async def ask_translator(
    stores: Stores, cluster: ClusterAnnouncement, objects: Sequence[FileObject], published: Manifest
) -> TablePlan:
    """Return what a translator of the published table says.

    Args:
        stores: where it is asked, and where the log is.
        cluster: that the objects are of.
        objects: of manifests.
        published: the table's current revision.

    Raises:
        NoAnswer: it does not say it; why not.
        StoreUnavailable: the log cannot be read.
    """
    if len(objects) > MAX_OBJECTS:
        raise NoAnswer(f"a translator is asked about {MAX_OBJECTS:,} objects at most")
    position = await stores.log_reader.position()
    histories = await stores.last_good.histories([one.ref for one in objects])
    last = {ref: known_of(history[-1]) for ref, history in histories.items() if history}
    known = {ref: one for ref, one in last.items() if one is not None}
    try:
        question = encode(PlanQuestion(deltas=tuple(propose(cluster, objects, known))))
    except TooLarge as error:
        raise NoAnswer(str(error)) from error
    basis = PlanBasis(release(), cluster.cluster, position.incarnation, position.last_sequence)
    answer = await ask_for_plan(stores.bus, published.table, basis, question)
    if answer.outcome is not PlanOutcome.PLANNED:
        raise NoAnswer(answer.detail or answer.outcome)
    problems = {one.ref: one.problems for one in answer.objects}
    foreign = {one.ref: one.foreign for one in answer.objects if one.foreign}
    findings, notes = locate(objects, Verdicts(problems, foreign), published.selection)
    return TablePlan(answer.diff, findings, notes, (*remarks_on(published), *answer.consequences))
