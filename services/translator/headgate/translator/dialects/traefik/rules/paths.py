"""Paths of rules as paths of the table.

Traefik compares a path whose escapes it has decoded, but for those of reserved characters and of `%`. Gateways index
exact paths and prefixes in the form that requests have: a blank is `%20` in every request, and so it is in the table.
A character that may come as itself or as an escape, such as `{` or those beyond ASCII, makes the path a pattern.
"""

from typing import Final

from headgate.common.patterns import compile_pattern
from headgate.common.table import Compare, Operator, PathMatch, PathType, Subject
from headgate.translator.dialects.traefik.rules.request_tests import RequestTest
from headgate.translator.dialects.traefik.rules.templates import PATH_PART, expand_template, has_template, quote

_OPERATORS: Final = {PathType.EXACT: Operator.EQUALS, PathType.STRING_PREFIX: Operator.PREFIX}
_IN_PATHS: Final = frozenset("-._~!$&'()*+,;=:@/%[]?#")
"""Characters besides letters and digits that are the same in a rule and in a path."""
_MUST_BE_ESCAPED: Final = range(0x21)


def path_test(path: str, path_type: PathType) -> RequestTest:
    """Return the test for a path as it is, or for what begins with it.

    Raises:
        ValueError: it does not begin with a slash.
    """
    _check_path(path)
    if any(_has_two_forms(character) for character in path):
        return _anchored_test(quote(path), path_type)
    written = "".join(map(_escaped, path))
    condition = Compare(subject=Subject.DECODED_PATH, operator=_OPERATORS[path_type], values=(path,))
    return RequestTest(condition, path=PathMatch(type=path_type, value=written))


def path_pattern_test(pattern: str) -> RequestTest:
    """Return the test for a pattern that is looked for anywhere in the path. Raises ValueError: RE2 refuses it."""
    compile_pattern(pattern)
    # The table looks for patterns from the beginning of a path.
    is_anchored = pattern.startswith("^") and "|" not in pattern
    return _pattern_test(pattern, pattern if is_anchored else f"(?s:.*)(?:{pattern})")


def path_template_test(template: str, path_type: PathType) -> RequestTest:
    """Return the test for a template, as `path_test` if it has no braces.

    Raises:
        ValueError: it does not begin with a slash, or its braces or patterns are wrong.
    """
    if not has_template(template):
        return path_test(template, path_type)
    _check_path(template)
    return _anchored_test(expand_template(template, PATH_PART), path_type)


def _anchored_test(pattern: str, path_type: PathType) -> RequestTest:
    anchored = f"^{pattern}{'$' if path_type is PathType.EXACT else ''}"
    compile_pattern(anchored)
    return _pattern_test(anchored, anchored)


def _pattern_test(pattern: str, from_beginning: str) -> RequestTest:
    condition = Compare(subject=Subject.DECODED_PATH, operator=Operator.REGEX, values=(pattern,))
    return RequestTest(condition, path=PathMatch(type=PathType.REGEX, value=from_beginning, decoded=True))


def _check_path(path: str) -> None:
    if not path.startswith("/"):
        raise ValueError(f"the path {path!r} does not begin with a slash: write {'/' + path!r}")


def _has_two_forms(character: str) -> bool:
    return not _is_same(character) and ord(character) not in _MUST_BE_ESCAPED and character != "\x7f"


def _is_same(character: str) -> bool:
    return character.isascii() and (character.isalnum() or character in _IN_PATHS)


def _escaped(character: str) -> str:
    return character if _is_same(character) else f"%{ord(character):02X}"
