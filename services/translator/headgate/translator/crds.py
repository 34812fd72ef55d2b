"""Writes the manifests of the custom resource definitions of all dialects: `make crds`."""

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import yaml

from headgate.translator.composition import DIALECTS
from headgate.translator.objects.definitions import make_definition
from headgate.translator.objects.dialect import Dialect


class _PlainDumper(yaml.SafeDumper):
    """Writes everything out, however often it occurs."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def make_files(dialects: Sequence[Dialect] = DIALECTS) -> Iterator[tuple[str, str]]:
    """Yield the names of the files and what is in them, of the kinds whose row says that they have a definition."""
    for translated in (translated for dialect in dialects for translated in dialect.kinds):
        kind, definition = translated.stored.kind, translated.definition
        if kind.has_definition and definition is not None:
            made = make_definition(kind, definition)
            text = yaml.dump(made, Dumper=_PlainDumper, sort_keys=False, width=120)
            yield f"{kind.group}_{kind.resource}.yaml", text


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the manifests into a folder, or say which of them are not as the models have them."""
    parser = argparse.ArgumentParser(prog="crds", description="Write the custom resource definitions.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 if a file is not as it should be")
    options = parser.parse_args(arguments)
    stale = []
    for name, text in make_files():
        path = options.folder / name
        if path.exists() and path.read_text() == text:
            continue
        stale.append(path)
        if not options.check:
            path.write_text(text)
    for path in stale:
        print(f"{path}: {'not as the models have it; run make crds' if options.check else 'written'}")
    return 1 if stale and options.check else 0


if __name__ == "__main__":
    sys.exit(main())
