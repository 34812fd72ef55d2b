"""The gateway: serves traffic by the current route table.

The modules that every request goes through exist twice where a C compiler was at hand: as sources, and compiled from
these by mypyc (`hatch_build.py`). Which of the two run is decided here, once for the process, before any of them is
imported. `HEADGATE_ENGINE` says how:

    auto      the default: compiled, if they were compiled from the very sources that are here
    pure      the sources
    compiled  compiled, or an ImportError
"""

import hashlib
import importlib
import json
import os
import sys
from collections.abc import Sequence
from importlib.machinery import EXTENSION_SUFFIXES, SOURCE_SUFFIXES, FileFinder, ModuleSpec, SourceFileLoader
from pathlib import Path
from types import ModuleType
from typing import Literal

_PACKAGE = Path(__file__).parent
_RECORD = _PACKAGE / "compiled.json"


class _SourcesOnly:
    """Finds the sources of this package's modules, also where a compiled module lies beside them."""

    @staticmethod
    def find_spec(fullname: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        if path is None or not fullname.startswith(f"{__name__}."):
            return None
        finders = (FileFinder(folder, (SourceFileLoader, SOURCE_SUFFIXES)) for folder in path)
        specs = (finder.find_spec(fullname) for finder in finders)
        return next((spec for spec in specs if spec is not None and spec.loader is not None), None)


def _why_not_compiled() -> str:
    """Say what is wrong with the compiled modules; empty if nothing is."""
    try:
        record = json.loads(_RECORD.read_bytes())
        library, made_from = _PACKAGE / record["library"], dict[str, str](record["sources"])
    except FileNotFoundError:
        return "are absent"
    except (ValueError, KeyError, TypeError):  # of an earlier release, or cut off
        return "have a record that cannot be read"
    if not library.exists():
        return "lack their library"
    for name, digest in made_from.items():
        source = _PACKAGE / name
        if not source.exists() or hashlib.sha256(source.read_bytes()).hexdigest() != digest:
            return f"are older than {name}"
        if not source.with_suffix(EXTENSION_SUFFIXES[0]).exists():
            return "are those of another Python"
    try:
        _load(record["library"])
    except ImportError as error:
        return f"cannot be loaded ({error})"
    return ""


def _load(library: str) -> None:
    """Load the machine code of this package, and of no other that lies on the path.

    Raises:
        ImportError: it is damaged, or needs another C library.
    """
    name = library.partition(".")[0]
    module = importlib.import_module(f"{__name__}.{name}")
    # mypyc expects the library above the packages, and derives their folders from its place.
    module.__file__ = str(_PACKAGE.parents[1] / library)


def _choose_engine(wanted: str) -> Literal["compiled", "pure"]:
    if wanted not in ("auto", "pure", "compiled"):
        raise ImportError(f"HEADGATE_ENGINE is {wanted!r}, which is none of auto, pure and compiled")
    fault = "" if wanted == "pure" else _why_not_compiled()
    if wanted == "compiled" and fault:
        raise ImportError(
            f"HEADGATE_ENGINE is compiled, but the compiled modules {fault}; `make accelerate` makes them"
        )
    if wanted == "pure" or fault:
        sys.meta_path.insert(0, _SourcesOnly)
        return "pure"
    return "compiled"


ENGINE: Literal["compiled", "pure"] = _choose_engine(os.environ.get("HEADGATE_ENGINE") or "auto")
"""What this process runs."""
