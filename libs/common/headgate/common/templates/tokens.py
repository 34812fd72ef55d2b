"""Cutting a template: texts and tags, and the tags into tokens of Lua."""

import re
from dataclasses import dataclass
from typing import Final

_OPENING: Final = re.compile(r"\\?\{[{*%(\[#]|\\?\{-(\w+)-\}")
_CLOSING: Final = {"{{": "}}", "{*": "*}", "{%": "%}", "{(": ")}", "{[": "]}", "{#": "#}"}
_KEPT: Final = ("raw", "verbatim")
_TOKEN: Final = re.compile(
    r"""[ \t\r\n]+
    | (?P<long>(?:--)?\[=*\[)
    | --[^\n]*
    | (?P<name>[A-Za-z_][A-Za-z0-9_]*)
    | (?P<number>0[xX][0-9a-fA-F]{1,12} | (?:[0-9]+\.?[0-9]* | \.[0-9]+)(?:[eE][+-]?[0-9]{1,3})?)
    | (?P<string>"(?:[^"\\\n]|\\(?s:.))*" | '(?:[^'\\\n]|\\(?s:.))*')
    | (?P<operator>==|~=|<=|>=|\.\.\.?|[-+*/%^#<>=(){}\[\];:,.])""",
    re.VERBOSE,
)
_ESCAPES: Final = {"n": "\n", "t": "\t", "r": "\r", "\\": "\\", '"': '"', "'": "'", "\n": "\n"}
_ESCAPE: Final = re.compile(r"\\([0-9]{1,3}|(?s:.))")


class TemplateFault(ValueError):
    """A template that is not followed; the text says where and why."""


@dataclass(frozen=True, slots=True)
class Token:
    """A piece of a template.

    `kind` is `text`; `raw` or `escaped` where a value begins that goes out, `close` where it ends; `name`, `number`,
    `string` or `operator` within tags; `end` behind the last.
    """

    kind: str
    text: str
    line: int


def cut(template: str) -> list[Token]:
    """Cut a template. Raises TemplateFault."""
    tokens: list[Token] = []
    at = 0
    line, counted = 1, 0
    absent: set[str] = set()
    while True:
        found = _OPENING.search(template, at)
        if found is None:
            break
        text, after = template[at : found.start()], found.end()
        line, counted = line + template.count("\n", counted, after), after
        tag = found[0]
        if tag.startswith("\\"):
            # `\{{` is a tag that goes out.
            at = after
            tokens.append(Token("text", text + tag[1:], line))
            continue
        closing = tag if found[1] else _CLOSING[tag]
        end = template.find(closing, after) if closing not in absent else -1
        if end < 0:
            absent.add(closing)
            at = after
            tokens.append(Token("text", text + tag, line))
            continue
        at = end + len(closing)
        if tag == "{%":
            # As the original: without the blanks before, and the line feed behind.
            text = text.rstrip(" \t")
            at += template.startswith("\n", at)
        if text:
            tokens.append(Token("text", text, line))
        tokens += _of_tag(tag, template[after:end], line)
    if at < len(template):
        tokens.append(Token("text", template[at:], 0))
    tokens.append(Token("end", "the end of the template", template.count("\n") + 1))
    return tokens


def _of_tag(tag: str, inside: str, line: int) -> list[Token]:
    if tag == "{#":
        return []
    if tag.startswith("{-"):
        if tag[2:-2] not in _KEPT:
            raise TemplateFault(f"line {line}: blocks ({tag}) are not followed; write their content where it is wanted")
        return [Token("text", inside, line)]
    if tag in ("{(", "{["):
        raise TemplateFault(
            f"line {line}: other templates ({tag}...{_CLOSING[tag]}) are not included; write their content here"
        )
    tokens = _of_lua(inside, line)
    if tag == "{%":
        return tokens
    return [Token("escaped" if tag == "{{" else "raw", tag, line), *tokens, Token("close", _CLOSING[tag], line)]


def _of_lua(code: str, line: int) -> list[Token]:
    tokens = []
    at = 0
    while at < len(code):
        found = _TOKEN.match(code, at)
        if found is None:
            raise TemplateFault(f"line {line}: {code[at : at + 20]!r} is no Lua")
        here, at = line, found.end()
        line += found[0].count("\n")
        kind = found.lastgroup
        if kind == "long":
            raise TemplateFault(
                f"line {here}: long texts and comments ({found[0]}) are not followed; use quotes or `--`"
            )
        if kind is not None:
            text = _ESCAPE.sub(_unescaped, found[0][1:-1]) if kind == "string" else found[0]
            tokens.append(Token(kind, text, here))
    return tokens


def _unescaped(found: re.Match[str]) -> str:
    escape = found[1]
    return chr(int(escape)) if escape.isdecimal() else _ESCAPES.get(escape, escape)
