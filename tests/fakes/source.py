"""Modules of the engine as their sources say, where the compiled ones are in use."""

import importlib
import importlib.machinery
import importlib.util
from pathlib import Path
from types import ModuleType


def from_source(name: str) -> ModuleType:
    """Load a second copy of a module from its source."""
    path = Path(str(importlib.import_module(name).__file__))
    source = path.with_name(path.name.partition(".")[0] + ".py")
    loader = importlib.machinery.SourceFileLoader(f"{name}_from_source", str(source))
    spec = importlib.util.spec_from_loader(loader.name, loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module
