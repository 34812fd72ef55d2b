"""Validators of models are built where they are used: building all of them is a good part of every start."""

import subprocess
import sys

import pytest

CODE = """
import sys
from importlib import import_module

def below(model):
    for one in model.__subclasses__():
        yield one
        yield from below(one)

imported, module, name = sys.argv[1:]
import_module(imported)
models = set(below(getattr(import_module(module), name)))
assert len(models) > 20, models
built = sum(model.__pydantic_complete__ for model in models)
print(built / len(models))
"""


@pytest.mark.parametrize(
    ("imported", "module", "base"),
    [
        ("headgate.common.plugins.catalogue", "headgate.common.plugins.config", "PluginConfig"),
        ("headgate.translator.dialects.apisix", "headgate.translator.dialects.apisix.models.fields", "Model"),
    ],
)
def test_an_import_builds_few_validators(imported: str, module: str, base: str) -> None:
    """A model of which an instance is the default of a field is built by that."""
    arguments = [sys.executable, "-c", CODE, imported, module, base]
    done = subprocess.run(arguments, capture_output=True, text=True, check=True)
    assert float(done.stdout) < 0.3
