"""Functions of an operator's own file, which routes name. Objects of a cluster choose among them and bring none."""

import importlib.util
import inspect
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from headgate.common.errors import SettingsError

Hook = Callable[..., Any]
_MODULE = "headgate_hooks"


def load_hooks(file: Path | None) -> Mapping[str, Hook]:
    """Run a file and return its own functions by name, but for those that begin with an underscore.

    Raises:
        SettingsError: it cannot be read or run.
    """
    if file is None:
        return MappingProxyType({})
    spec = importlib.util.spec_from_file_location(_MODULE, file)
    if spec is None or spec.loader is None:
        raise SettingsError(f"hooks_file: {str(file)!r} is no file of Python: its name has to end in .py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[_MODULE] = module  # classes and pickles of the file look for it
    try:
        spec.loader.exec_module(module)
    except OSError as error:
        raise SettingsError(f"hooks_file: {str(file)!r} cannot be read: {error.strerror}") from error
    except Exception as error:
        raise SettingsError(f"hooks_file: {str(file)!r} cannot be run: {type(error).__name__}: {error}") from error
    found = inspect.getmembers(module, inspect.isfunction)
    own = {name: each for name, each in found if each.__module__ == _MODULE and not name.startswith("_")}
    return MappingProxyType(own)
