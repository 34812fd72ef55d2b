"""Tables of cases that Traefik's own tests have."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml


def listed(path: Path, make: Callable[..., Any]) -> list[Any]:
    """Read a YAML file with the cases of each function, as parameters of a test: `make` takes a case's fields."""
    return [
        pytest.param(
            make(**{name: value for name, value in case.items() if name != "case"}), id=f"{test}-{case['case']}"
        )
        for test, cases in yaml.safe_load(path.read_text()).items()
        for case in cases
    ]
