"""Modules of the engine as their sources say, where the compiled ones are in use."""

import importlib
import importlib.machinery
import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from unittest import mock


def from_source(*names: str) -> ModuleType:
    """Load second copies of modules from their sources, and return the last; each imports the copies before it."""
    copies: dict[str, ModuleType] = {}
    for name in names:
        importlib.import_module(name)
        with mock.patch.dict(sys.modules, copies):
            copies[name] = _copy(name)
    return copies[names[-1]]


def _copy(name: str) -> ModuleType:
    package, _, last = name.rpartition(".")
    source = Path(str(importlib.import_module(package).__file__)).with_name(f"{last}.py")
    loader = importlib.machinery.SourceFileLoader(f"{name}_from_source", str(source))
    spec = importlib.util.spec_from_loader(loader.name, loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module
