"""Durations as Go writes them."""

import pytest

from headgate.gateway.plugins.kit.durations import duration_text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0s"),
        (0.0005, "500us"),
        (0.25, "250ms"),
        (0.9999999, "1s"),
        (9.997289834, "9.99729s"),
        (60, "1m0s"),
        (90.5, "1m30.5s"),
        (3723, "1h2m3s"),
    ],
)
def test_a_duration_is_written_as_go_writes_it(seconds: float, text: str) -> None:
    assert duration_text(seconds) == text
