"""What every test gets."""

import logging
import os
from collections.abc import Iterator

import pytest
from hypothesis import settings

# Examples are bounded by count: two cores that others use too say nothing about how long one may take.
settings.register_profile("headgate", deadline=None, max_examples=60)
settings.load_profile("headgate")


@pytest.fixture(autouse=True)
def _no_settings_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests see no HEADGATE_* variable of the shell that runs them."""
    for name in os.environ:
        if name.startswith("HEADGATE_"):
            monkeypatch.delenv(name)


@pytest.fixture(autouse=True)
def _log_levels_are_left_alone() -> Iterator[None]:
    """A test that silences our lines for good fails itself, and not those that read a line after it."""
    logger = logging.getLogger("headgate")
    before = logger.level
    yield
    after = logger.level
    logger.setLevel(before)
    assert after == before
