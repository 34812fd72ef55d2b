"""What is known of a log that is being read."""

from headgate.common.deltas import LogPlace
from headgate.common.stores import LogBatch, LogPosition
from headgate.translator.leading.intake import Causes, Intake
from headgate.translator.offline import make_dialects
from headgate.translator.sources.classes import ClassSettings
from headgate.translator.translation import Translation


def test_a_replay_is_complete_also_where_the_last_message_could_not_be_read() -> None:
    intake = Intake(LogPosition("log", 7), Translation(make_dialects(ClassSettings())), "default")
    intake.receive(LogBatch((), LogPlace("log", 6, 0)), Causes())
    assert not intake.is_replayed
    intake.receive(LogBatch((), LogPlace("log", 7, 0)), Causes())
    assert intake.is_replayed
