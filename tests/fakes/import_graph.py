"""Who imports whom in a package, read from the sources: imports within functions and for type checkers included."""

import ast
from collections.abc import Iterator, Mapping
from pathlib import Path

Graph = Mapping[str, frozenset[str]]
"""The modules that each module imports."""


def import_graph(root: Path, package: str) -> Graph:
    """Read a package below the folder `root`, where its name is the path."""
    sources = {_module(path, root): path for path in (root / package.replace(".", "/")).rglob("*.py")}
    return {name: frozenset(_imported(path, sources)) - {name} for name, path in sources.items()}


def _module(path: Path, root: Path) -> str:
    return ".".join(path.relative_to(root).with_suffix("").parts).removesuffix(".__init__")


def _imported(path: Path, modules: Mapping[str, Path]) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module is not None:
            found = {f"{node.module}.{alias.name}" for alias in node.names} & modules.keys()
            whole = len(found) < len(node.names) and node.module in modules
            yield from (*found, *((node.module,) if whole else ()))
        elif isinstance(node, ast.Import):
            yield from {alias.name for alias in node.names} & modules.keys()


def circles(graph: Graph) -> list[frozenset[str]]:
    """Return the sets of more than one module each of which leads to every other one by imports."""
    reached = {name: _reach(graph, name) for name in graph}
    found = {frozenset(other for other in reached[name] if name in reached[other]) for name in graph}
    return sorted((each for each in found if len(each) > 1), key=sorted)


def _reach(graph: Graph, start: str) -> set[str]:
    found: set[str] = set()
    waiting = [start]
    while waiting:
        for name in graph[waiting.pop()] - found:
            found.add(name)
            waiting.append(name)
    return found
