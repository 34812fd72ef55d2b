"""Writes the tables of `docs/plugins.md` from the plugins themselves: names, orders, fields, defaults, what they mean.

    python -m headgate.gateway.plugins.reference docs/plugins.md

replaces what stands between the two marks in the file; the meaning of a field is the text below it in the source.
"""

import ast
import inspect
import re
import sys
import textwrap
import types
import typing
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, Literal, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from headgate.common.plugins.config import PluginConfig
from headgate.common.plugins.credentials import CREDENTIALS
from headgate.common.secret import Secret
from headgate.gateway.plugins.built_in.catalogue import BUILT_IN
from headgate.gateway.plugins.interface import Plugin

BEGIN = "<!-- fields: written by headgate.gateway.plugins.reference -->"
END = "<!-- end of fields -->"

_HERE = Path(__file__).parent
_PACKAGE = Plugin.__module__.partition(".interface")[0]
_OF_PLUGINS = {kind.Config for kind in BUILT_IN.values()}
"""Have tables of their own."""
_SIMPLE: dict[Any, str] = {
    bool: "boolean",
    bytes: "text",
    float: "number",
    int: "whole number",
    str: "text",
    type(None): "null",
}


def render() -> str:
    """Return the tables of all built-in plugins."""
    parts = [_overview()]
    parts += [_section(kind) for _, kind in sorted(BUILT_IN.items())]
    return "\n".join(parts)


def replaced(document: str) -> str:
    """Return a document with its tables made anew. Raises ValueError if it has no marks."""
    before, begin, rest = document.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"the document has no {BEGIN} with a {END} behind it")
    return f"{before}{BEGIN}\n\n{render()}\n{END}{after}"


def _overview() -> str:
    lines = ["| plugin | order | what it does |", "|---|---|---|"]
    for kind in sorted(BUILT_IN.values(), key=lambda kind: -kind.order):
        lines.append(f"| [`{kind.name}`](#{kind.name}) | {kind.order} | {_summary(kind)} |")
    return "\n".join(lines) + "\n"


def _summary(kind: type[Plugin[Any]]) -> str:
    """Return the first sentence of a plugin's module, behind its name."""
    return re.split(r"(?<=\.)\s", _one_line(_text(kind)), maxsplit=1)[0].rstrip(".")


def _text(kind: type[Plugin[Any]]) -> str:
    """Return what a plugin's module says of it, without its name in front; read in its source, as some are compiled."""
    source = _HERE.joinpath(*kind.__module__.removeprefix(f"{_PACKAGE}.").split(".")).with_suffix(".py")
    text = (ast.get_docstring(ast.parse(source.read_text())) or "").removeprefix(f"`{kind.name}`: ")
    return text[:1].upper() + text[1:]


def _section(kind: type[Plugin[Any]]) -> str:
    lines = [f"### {kind.name}\n", f"{_text(kind)}\n"]
    lines += ["| field | type | default | meaning |", "|---|---|---|---|"]
    lines += _rows(kind.Config, "")
    credential = CREDENTIALS.get(kind.name)
    if credential is not None:
        lines += ["\nOf a consumer it knows:\n", "| field | type | default | meaning |", "|---|---|---|---|"]
        lines += _rows(credential, "")
    return "\n".join(lines) + "\n"


def _rows(model: type[BaseModel], prefix: str) -> Iterator[str]:
    meanings = _meanings(model)
    for name in sorted(model.model_fields, key=lambda name: _depth(model, name)):
        info = model.model_fields[name]
        inner = [one for one in _models(info.annotation) if one not in _OF_PLUGINS]
        shown = "list" if _is_list(info.annotation) else "object"
        kind = shown if inner else _type_name(info.annotation, info)
        shown_name = f"{prefix}{info.alias or name}"
        cells = [f"`{shown_name}`", kind, _default(info), meanings.get(name, "")]
        yield f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"
        for one in inner:
            yield from _rows(one, f"{shown_name}{'[]' if shown == 'list' else ''}.")


def _depth(model: type[BaseModel], name: str) -> int:
    """Return how far up a field was defined: a plugin's own ones come before those that it shares with others."""
    return next(depth for depth, base in enumerate(model.__mro__) if name in inspect.get_annotations(base))


def _models(annotation: Any) -> Iterator[type[PluginConfig]]:
    """Find the models within a type."""
    if isinstance(annotation, type) and issubclass(annotation, PluginConfig):
        yield annotation
    for part in get_args(annotation):
        yield from _models(part)


def _is_list(annotation: Any) -> bool:
    return get_origin(annotation) is tuple or any(_is_list(part) for part in get_args(annotation))


def _type_name(annotation: Any, info: FieldInfo | None = None) -> str:
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return _type_name(arguments[0])
    if origin is Literal:
        return ", ".join(f"`{value}`" for value in arguments)
    if origin in (typing.Union, types.UnionType):
        names = [_type_name(part) for part in arguments if part is not type(None)]
        return " or ".join(dict.fromkeys(names))
    if origin is tuple:
        return f"list of {_type_name(arguments[0])}" if len(arguments) == 2 and arguments[1] is ... else "list"
    if origin is dict:
        return "map"
    if origin is Secret or annotation is Secret:
        return "secret text"
    return _SIMPLE.get(annotation, "any") + _bounds(info)


def _bounds(info: FieldInfo | None) -> str:
    words = []
    for constraint in info.metadata if info is not None else ():
        for sign, text in (("gt", "above"), ("ge", "from"), ("le", "to")):
            bound = getattr(constraint, sign, None)
            if bound is not None:
                words.append(f"{text} {bound}")
    return f" {' '.join(words)}" if words else ""


def _default(info: FieldInfo) -> str:
    if info.is_required():
        return "required"
    default = info.get_default(call_default_factory=True)
    if default in (None, (), {}, "") or isinstance(default, BaseModel):
        return ""
    if isinstance(default, tuple):
        default = ", ".join(map(str, default))
    return f"`{str(default).lower() if isinstance(default, bool) else default}`"


@lru_cache
def _meanings(model: type[BaseModel]) -> dict[str, str]:
    """Read the texts below a model's fields, inherited ones too."""
    found: dict[str, str] = {}
    for base in reversed(model.__mro__):
        if not issubclass(base, PluginConfig) or base is PluginConfig:
            continue
        definition = ast.parse(textwrap.dedent(inspect.getsource(base))).body[0]
        assert isinstance(definition, ast.ClassDef)
        for field, text in zip(definition.body, definition.body[1:], strict=False):
            if not (isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name)):
                continue
            if (
                isinstance(text, ast.Expr)
                and isinstance(text.value, ast.Constant)
                and isinstance(text.value.value, str)
            ):
                found[field.target.id] = _one_line(text.value.value)
    return found


def _one_line(text: str) -> str:
    return " ".join(text.split())


def main() -> None:
    """Write the tables into the file that is named."""
    path = Path(sys.argv[1])
    path.write_text(replaced(path.read_text()))


if __name__ == "__main__":
    main()
