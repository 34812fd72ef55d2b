"""Files that are no manifests: configurations in YAML or TOML."""

import tomllib
from pathlib import Path
from typing import Any, Final

import yaml

from headgate.common.resources import JsonObject

_MAX_BYTES: Final = 1024 * 1024
_YAML: Final = frozenset((".yaml", ".yml"))


def read_configuration(path: Path) -> JsonObject | None:
    """Return what a file says; None if it is not one document with names, or cannot be read."""
    if not path.is_file() or path.suffix not in _YAML | {".toml"} or path.stat().st_size > _MAX_BYTES:
        return None
    try:
        text = path.read_text(encoding="utf-8")
        read: Any = tomllib.loads(text) if path.suffix == ".toml" else yaml.safe_load(text)
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError, yaml.YAMLError):
        return None  # What is no configuration is read, and reported, as manifests.
    return read if isinstance(read, dict) else None
