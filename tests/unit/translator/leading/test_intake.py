"""What is known of a log that is being read."""

from headgate.common.deltas import LogPlace
from headgate.common.stores import LogBatch, LogPosition
from headgate.translator.composition import DIALECTS
from headgate.translator.leading.intake import Causes, Intake
from headgate.translator.translation import Translation
from headgate.translator.world.settings import TranslationSettings


def test_a_replay_is_complete_also_where_the_last_message_could_not_be_read() -> None:
    intake = Intake(LogPosition("log", 7), Translation(DIALECTS, TranslationSettings()), "default")
    intake.receive(LogBatch((), LogPlace("log", 6, 0)), Causes())
    assert not intake.is_replayed
    intake.receive(LogBatch((), LogPlace("log", 7, 0)), Causes())
    assert intake.is_replayed
